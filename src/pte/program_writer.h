// SPDX-License-Identifier: BSD-3-Clause
// Program -> bytes of a .pte file. The segments of a Program may come from anywhere: another file,
// memory, a callback that makes them (base/composed_source.h). So the bytes of a program of any
// size exist without a file; write_file() saves them, a reader reads them.
#pragma once

#include <string>

#include "base/byte_source.h"
#include "base/result.h"
#include "pte/program.h"

namespace ptero::pte {

// The file that says `program`: the same Program gives the same bytes. Segments keep their order
// and start at multiples of 128; a program without segment bytes gets no extended header, as from
// ExecuTorch's exporter. `program.layout` plays no part. The result keeps the sources of all
// ranges alive and reads them when it is read; it holds only the part outside of the segments.
// ExecuTorch's own runtime, unlike ours, refuses a program whose constant_segment is absent or has
// no offset, even without constants: give it the placeholder, SubsegmentOffsets{segment, {0}}.
// Code invalid_program, with the reader's sentence, when `program` breaks a rule of program.h.
Result<ByteSourcePtr> assemble_program(const Program& program, std::string name = "program");

}  // namespace ptero::pte
