// SPDX-License-Identifier: BSD-3-Clause
// What the system knows about files and the C++ library does not tell.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/result.h"

namespace ptero {

struct FileStamp {
  // Differs when the path names another file, or one that was written to, replaced, or had its
  // times set, since: programs cannot choose the time of a change.
  std::string text;
  std::chrono::system_clock::time_point changed;
};

// Two changes within the resolution of the file system's clock (at most 2 s) may look like one: a
// stamp tells versions apart only if it is older than that when it is taken. Code io.
Result<FileStamp> file_stamp(const std::string& path);

// Where programs of this user keep what they can make again: $XDG_CACHE_HOME or ~/.cache,
// ~/Library/Caches on macOS, %LOCALAPPDATA% on Windows. It need not exist. Nothing when the
// environment does not say.
std::optional<std::string> user_cache_folder();

}  // namespace ptero
