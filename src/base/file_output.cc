// SPDX-License-Identifier: BSD-3-Clause
#include "base/file_output.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/composed_source.h"
#include "base/platform_output.h"

namespace ptero {
namespace {

namespace fs = std::filesystem;

fs::path path_of(const std::string& utf8) {
  return fs::path(reinterpret_cast<const char8_t*>(utf8.c_str()));
}

// A file that nobody else has opened; removed again unless it is moved to its place.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& final_path) {
    // The number makes two writers of one process differ; an old file of a crashed process with
    // this id is stepped over.
    static std::atomic<unsigned> counter = 0;
    for (int attempt = 0; attempt < 100; ++attempt) {
      fs::path path = final_path;
      path += fmt::format(".{}-{}.part", platform::process_id(), counter++);
      file_ = platform::open_new(path);
      if (file_ != nullptr) {
        path_ = std::move(path);
        std::setvbuf(file_, nullptr, _IONBF, 0);  // pieces are large already
        return;
      }
      if (errno != EEXIST) {
        return;
      }
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    close();
    if (!path_.empty()) {
      std::error_code ignored;
      fs::remove(path_, ignored);
    }
  }

  bool is_open() const { return file_ != nullptr; }
  bool write(std::span<const std::byte> bytes) {
    return std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
  }
  bool flush() { return std::fflush(file_) == 0 && platform::flush_to_disk(file_) == 0; }
  bool close() {
    std::FILE* const file = std::exchange(file_, nullptr);
    return file == nullptr || std::fclose(file) == 0;
  }
  std::error_code move_to(const fs::path& final_path) {
    std::error_code error;
    fs::rename(path_, final_path, error);
    if (!error) {
      path_.clear();
    }
    return error;
  }

 private:
  fs::path path_;  // empty once there is nothing to remove
  std::FILE* file_ = nullptr;
};

}  // namespace

Status write_file(const std::string& path, const ByteSource& source) {
  fs::path target = path_of(path);
  std::error_code error;
  const fs::file_status status = fs::status(target, error);
  PTERO_REJECT_IF(fs::is_directory(status), io, "{} is a folder, not a file to write.", path);
  PTERO_REJECT_IF(fs::exists(status) && !fs::is_regular_file(status), io,
                  "{} is not a regular file, so it is not written.", path);
  if (fs::exists(status)) {
    target = fs::canonical(target, error);
    PTERO_REJECT_IF(error, io, "The file {} cannot be found ({}).", path, error.message());
  }

  TemporaryFile file(target);
  PTERO_REJECT_IF(!file.is_open(), io, "The file {} cannot be created ({}).", path,
                  std::strerror(errno));
  PTERO_RETURN_IF_ERROR(copy_bytes(source,
                                   [&](std::span<const std::byte> piece) -> Status {
                                     PTERO_REJECT_IF(
                                         !file.write(piece), io,
                                         "The file {} ({} bytes) cannot be written ({}).", path,
                                         source.size(), std::strerror(errno));
                                     return ok_status();
                                   }),
                        "while writing {}", path);
  PTERO_REJECT_IF(!file.flush() || !file.close(), io,
                  "The file {} ({} bytes) cannot be brought to disk ({}).", path, source.size(),
                  std::strerror(errno));
  error = file.move_to(target);
  PTERO_REJECT_IF(error, io, "The file {} cannot be replaced ({}).", path, error.message());
  return ok_status();
}

}  // namespace ptero
