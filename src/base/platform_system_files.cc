// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>

#include "base/system_files.h"

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#define WIN32_LEAN_AND_MEAN
#include <filesystem>
#include <system_error>

#include <windows.h>
#else
#include <cerrno>
#include <cstring>

#include <sys/stat.h>
#endif

namespace ptero {

#ifdef _WIN32

Result<FileStamp> file_stamp(const std::string& path) {
  const std::filesystem::path wide(reinterpret_cast<const char8_t*>(path.c_str()));
  const HANDLE file = CreateFileW(wide.c_str(), FILE_READ_ATTRIBUTES,
                                  FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                  OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  const auto reason = [] {
    return std::system_category().message(static_cast<int>(GetLastError()));
  };
  PTERO_REJECT_IF(file == INVALID_HANDLE_VALUE, io, "The file {} cannot be opened ({}).", path,
                  reason());
  BY_HANDLE_FILE_INFORMATION info = {};
  FILE_BASIC_INFO times = {};
  const bool told = GetFileInformationByHandle(file, &info) != 0 &&
                    GetFileInformationByHandleEx(file, FileBasicInfo, &times, sizeof(times)) != 0;
  const std::string why = told ? "" : reason();
  CloseHandle(file);
  PTERO_REJECT_IF(!told, io, "The times of {} cannot be read ({}).", path, why);
  FileStamp stamp;
  stamp.text = fmt::format("{}-{}-{}-{}-{}-{}-{}", info.dwVolumeSerialNumber, info.nFileIndexHigh,
                           info.nFileIndexLow, info.nFileSizeHigh, info.nFileSizeLow,
                           times.LastWriteTime.QuadPart, times.ChangeTime.QuadPart);
  // Counted in 100 ns from 1601.
  constexpr int64_t kTo1970 = 116444736000000000;
  stamp.changed = std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::duration<int64_t, std::ratio<1, 10000000>>(times.ChangeTime.QuadPart -
                                                                  kTo1970)));
  return stamp;
}

std::optional<std::string> user_cache_folder() {
  const char* folder = std::getenv("LOCALAPPDATA");
  return folder != nullptr && *folder != '\0' ? std::optional<std::string>(folder) : std::nullopt;
}

#else

Result<FileStamp> file_stamp(const std::string& path) {
  struct stat info{};
  PTERO_REJECT_IF(stat(path.c_str(), &info) != 0, io, "The file {} cannot be opened ({}).", path,
                  std::strerror(errno));
#ifdef __APPLE__
  const timespec& written = info.st_mtimespec;
  const timespec& changed = info.st_ctimespec;
#else
  const timespec& written = info.st_mtim;
  const timespec& changed = info.st_ctim;
#endif
  FileStamp stamp;
  stamp.text = fmt::format("{}-{}-{}-{}.{:09}-{}.{:09}", info.st_dev, info.st_ino, info.st_size,
                           written.tv_sec, written.tv_nsec, changed.tv_sec, changed.tv_nsec);
  stamp.changed = std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::seconds(changed.tv_sec) + std::chrono::nanoseconds(changed.tv_nsec)));
  return stamp;
}

std::optional<std::string> user_cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  const std::string home = variable("HOME");
#ifdef __APPLE__
  return home.empty() ? std::nullopt : std::optional(home + "/Library/Caches");
#else
  // A relative path is to be ignored, says the XDG specification.
  if (const std::string folder = variable("XDG_CACHE_HOME"); folder.starts_with('/')) {
    return folder;
  }
  return home.empty() ? std::nullopt : std::optional(home + "/.cache");
#endif
}

#endif

}  // namespace ptero
