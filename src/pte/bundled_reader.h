// SPDX-License-Identifier: BSD-3-Clause
// A .bpte file -> BundledProgram.
#pragma once

#include "base/byte_source.h"
#include "base/result.h"
#include "pte/bundled_program.h"

namespace ptero::pte {

// Code invalid_program with one sentence that names the field, its value and the limit when the
// file is wrong. The inner .pte is found, not read.
Result<BundledProgram> read_bundled_program(const ByteRange& file);

}  // namespace ptero::pte
