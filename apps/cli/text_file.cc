// SPDX-License-Identifier: BSD-3-Clause
#include "cli/text_file.h"

#include <fstream>
#include <iterator>

namespace ptero::cli {

Result<std::string> read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  PTERO_REJECT_IF(!file, io, "File ({}) cannot be read.", path);
  PTERO_REJECT_IF(text.empty(), invalid_argument, "File ({}) is empty.", path);
  return text;
}

}  // namespace ptero::cli
