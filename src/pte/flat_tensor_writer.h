// SPDX-License-Identifier: BSD-3-Clause
// FlatTensor -> bytes of a .ptd file; the counterpart of program_writer.h for external weights.
#pragma once

#include <string>

#include "base/byte_source.h"
#include "base/result.h"
#include "pte/flat_tensor.h"

namespace ptero::pte {

// The file that says `file`: equal values give equal bytes. Segments keep their order and start at
// multiples of 128. The result reads the segments when it is read.
// Code invalid_program, with the reader's sentence, when `file` breaks a rule of flat_tensor.h.
Result<ByteSourcePtr> assemble_flat_tensor(const FlatTensor& file, std::string name = "tensors");

}  // namespace ptero::pte
