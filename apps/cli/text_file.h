// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "base/result.h"

namespace ptero::cli {

// All of a file. Code io when it cannot be read, invalid_argument when it is empty.
Result<std::string> read_text_file(const std::string& path);

}  // namespace ptero::cli
