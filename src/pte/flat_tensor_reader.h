// SPDX-License-Identifier: BSD-3-Clause
// A .ptd file -> FlatTensor.
#pragma once

#include "base/byte_source.h"
#include "base/result.h"
#include "pte/flat_tensor.h"

namespace ptero::pte {

// Code invalid_program with one sentence that names the field, its value and the limit when the
// file is wrong. Segments stay ranges of `file` and are not read.
Result<FlatTensor> read_flat_tensor(const ByteRange& file);

}  // namespace ptero::pte
