// SPDX-License-Identifier: BSD-3-Clause
#include "base/platform_output.h"

#ifdef _WIN32
#include <io.h>
#include <process.h>
#else
#include <unistd.h>
#endif

namespace ptero::platform {

#ifdef _WIN32

std::FILE* open_new(const std::filesystem::path& path) {
  return _wfopen(path.c_str(), L"wbx");
}
int flush_to_disk(std::FILE* file) {
  return _commit(_fileno(file));
}
int process_id() {
  return _getpid();
}

#else

std::FILE* open_new(const std::filesystem::path& path) {
  return std::fopen(path.c_str(), "wbx");
}
int flush_to_disk(std::FILE* file) {
  return fsync(fileno(file));
}
int process_id() {
  return getpid();
}

#endif

}  // namespace ptero::platform
