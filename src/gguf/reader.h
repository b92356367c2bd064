// SPDX-License-Identifier: BSD-3-Clause
// Bytes -> gguf::File. Model files come from strangers: every length, count, type and offset is
// checked before it is used, and a File that comes back keeps all [checked] promises of gguf.h.
#pragma once

#include "base/byte_source.h"
#include "base/result.h"
#include "gguf/gguf.h"

namespace ptero::gguf {

// Reads versions 2 and 3, little-endian. Tensor data is not looked at. Code invalid_program with
// one sentence that names the field, its value and the limit when the file is wrong; unsupported
// for another version or byte order; io when it cannot be read. The File keeps the source alive.
Result<File> read_gguf(const ByteRange& file);

// Whether the range starts with the format's magic.
Result<bool> is_gguf(const ByteRange& file);

}  // namespace ptero::gguf
