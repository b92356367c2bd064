// SPDX-License-Identifier: BSD-3-Clause
// Bytes -> Program. Model files come from strangers: every offset, id, count, size and product is
// checked before it is used, and a Program that comes back keeps all [checked] promises of
// program.h. Nothing is read beyond the flatbuffer: segments stay ByteRanges of `file`.
#pragma once

#include "base/byte_source.h"
#include "base/result.h"
#include "pte/program.h"

namespace ptero::pte {

// Reads a .pte, with or without an extended header. Code invalid_program with one sentence that
// names the field, its value and the limit when the file is wrong; io when it cannot be read.
// The program keeps the range's source alive.
Result<Program> read_program(const ByteRange& file);

// What a file says it is, by its magic; tells a .bpte from a .pte from a .ptd before reading it.
enum class FileKind { program, bundled_program, flat_tensor, unknown };
Result<FileKind> file_kind(const ByteRange& file);

}  // namespace ptero::pte
