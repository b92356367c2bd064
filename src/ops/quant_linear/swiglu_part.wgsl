// SPDX-License-Identifier: BSD-3-Clause

fn swiglu(gate: f32, up: f32) -> f32 {
  return gate / (1.0 + exp(-gate)) * up;
}
