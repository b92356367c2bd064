// SPDX-License-Identifier: BSD-3-Clause
// Saving bytes to a file, all or nothing.
#pragma once

#include <string>

#include "base/byte_source.h"
#include "base/result.h"

namespace ptero {

// Writes the bytes of `source` to a temporary file beside `path` and renames it there when it is
// complete and on disk. After an error the temporary file is gone and a file that was at `path`
// before is untouched. A symbolic link is followed; anything else that is no regular file is
// refused. `source` may be the file at `path` itself, mapped. Code io, with the system's reason,
// when the file cannot be created or written (disk full); otherwise the error of the source.
Status write_file(const std::string& path, const ByteSource& source);

}  // namespace ptero
