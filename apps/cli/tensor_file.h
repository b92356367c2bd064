// SPDX-License-Identifier: BSD-3-Clause
// Tensors in files, and how far two tensors are apart.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/host_tensor.h"

namespace ptero::cli {

// "float32", "f32", "int64", "i64", "bool" and so on.
Result<pte::ScalarType> parse_type(std::string_view name);

// Raw little-endian elements; the file holds exactly as many bytes as the shape takes.
Result<graph::HostTensor> read_raw_tensor(const std::string& path, pte::ScalarType type,
                                          const graph::Shape& shape);

// NumPy's .npy, format versions 1 to 3, C order.
Result<graph::HostTensor> read_npy(const std::string& path);
Status write_npy(const std::string& path, const graph::HostTensor& tensor);

// "a.npy", or "b.bin:f32:1x5" (an empty shape, "b.bin:f32:", is a single element).
Result<graph::HostTensor> read_tensor_argument(const std::string& argument);

// One element as text, for people.
std::string element_text(const graph::HostTensor& tensor, size_t i);

struct Tolerance {
  double atol = 1e-4;
  double rtol = 1e-3;
};

struct Comparison {
  double largest_error = 0;  // absolute, over the elements that pass
  // The first element that does not: its place, both values. Empty when all pass.
  std::string difference;
  bool has_nan = false;  // where none is expected
};

// An element passes within atol, or within rtol of the expected value; NaN never does, integers
// and bools only when equal. An error when shapes or types disagree.
Result<Comparison> compare(const graph::HostTensor& got, const graph::HostTensor& expected,
                           const Tolerance& tolerance);

}  // namespace ptero::cli
