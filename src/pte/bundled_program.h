// SPDX-License-Identifier: BSD-3-Clause
// What a .bpte file says: a whole .pte together with inputs and expected outputs of its methods.
// bundled_reader.h makes one from bytes. [checked] has the meaning that program.h gives it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/byte_source.h"
#include "pte/values.h"

namespace ptero::pte {

struct BundledTensor {
  ScalarType scalar_type = ScalarType::float32;
  std::vector<int32_t> sizes;      // [checked] none negative
  std::vector<uint8_t> dim_order;  // [checked] a permutation of the rank
  ByteRange data;                  // [checked] as long as the tensor
};

// In the order of the file's union, whose tag is index() + 1.
using BundledValue = std::variant<BundledTensor, int64_t, bool, double>;

struct BundledTestCase {
  std::vector<BundledValue> inputs;
  std::vector<BundledValue> expected_outputs;
};

struct BundledMethod {
  std::string name;  // [checked] not empty
  std::vector<BundledTestCase> cases;
};

struct BundledProgram {
  uint32_t version = 0;
  std::vector<BundledMethod> methods;
  ByteRange program;  // the .pte; read it with program_reader.h
};

}  // namespace ptero::pte
