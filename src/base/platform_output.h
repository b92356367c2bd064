// SPDX-License-Identifier: BSD-3-Clause
// What file_output.cc needs from the system and the C++ library does not offer. Internal.
#pragma once

#include <cstdio>
#include <filesystem>

namespace ptero::platform {

// A new file for writing; null, with errno set, when it exists or cannot be made.
std::FILE* open_new(const std::filesystem::path& path);

// 0 when everything that was written is on disk; otherwise errno is set.
int flush_to_disk(std::FILE* file);

int process_id();

}  // namespace ptero::platform
