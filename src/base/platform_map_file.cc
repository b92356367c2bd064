// SPDX-License-Identifier: BSD-3-Clause
// map_file() of base/byte_source.h, for Windows and for POSIX systems.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

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

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "base/byte_source.h"
#include "base/checked.h"
#include "base/memory_source.h"

namespace ptero {
namespace {

#ifdef _WIN32

std::string system_reason() {
  return std::system_category().message(static_cast<int>(GetLastError()));
}

class MappedSource final : public MemorySource {
 public:
  MappedSource(const void* data, size_t size, std::string name)
      : MemorySource({static_cast<const std::byte*>(data), size}, std::move(name)), data_(data) {}
  ~MappedSource() override { UnmapViewOfFile(data_); }

 private:
  const void* data_;
};

class OwnedHandle {
 public:
  explicit OwnedHandle(HANDLE handle) : handle_(handle) {}
  OwnedHandle(const OwnedHandle&) = delete;
  OwnedHandle& operator=(const OwnedHandle&) = delete;
  ~OwnedHandle() {
    if (valid()) {
      CloseHandle(handle_);
    }
  }
  bool valid() const { return handle_ != nullptr && handle_ != INVALID_HANDLE_VALUE; }
  HANDLE get() const { return handle_; }

 private:
  HANDLE handle_;
};

std::filesystem::path utf8_path(const std::string& path) {
  return std::filesystem::path(reinterpret_cast<const char8_t*>(path.c_str()));
}

#else

class MappedSource final : public MemorySource {
 public:
  MappedSource(void* data, size_t size, std::string name)
      : MemorySource({static_cast<const std::byte*>(data), size}, std::move(name)),
        data_(data),
        mapped_size_(size) {}
  ~MappedSource() override { munmap(data_, mapped_size_); }

 private:
  void* data_;
  size_t mapped_size_;
};

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string system_reason() {
  return std::strerror(errno);
}

#endif

}  // namespace

#ifdef _WIN32

Result<ByteSourcePtr> map_file(const std::string& path) {
  const OwnedHandle file(CreateFileW(utf8_path(path).c_str(), GENERIC_READ,
                                     FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING,
                                     FILE_ATTRIBUTE_NORMAL, nullptr));
  PTERO_REJECT_IF(!file.valid(), io, "The file {} cannot be opened ({}).", path, system_reason());
  LARGE_INTEGER size;
  PTERO_REJECT_IF(!GetFileSizeEx(file.get(), &size), io, "The size of {} cannot be read ({}).",
                  path, system_reason());
  if (size.QuadPart == 0) {
    return own_bytes({}, path);  // an empty file cannot be mapped
  }
  const std::optional<size_t> mapped_size = checked_cast<size_t>(size.QuadPart);
  PTERO_REJECT_IF(!mapped_size, out_of_memory,
                  "The file {} ({} bytes) does not fit in this system's address space.", path,
                  size.QuadPart);
  const OwnedHandle mapping(CreateFileMappingW(file.get(), nullptr, PAGE_READONLY, 0, 0, nullptr));
  PTERO_REJECT_IF(!mapping.valid(), io, "The file {} cannot be mapped ({}).", path,
                  system_reason());
  const void* data = MapViewOfFile(mapping.get(), FILE_MAP_READ, 0, 0, *mapped_size);
  PTERO_REJECT_IF(data == nullptr, io, "The file {} cannot be mapped ({}).", path, system_reason());
  return ByteSourcePtr(std::make_shared<MappedSource>(data, *mapped_size, path));
}

#else

Result<ByteSourcePtr> map_file(const std::string& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not hang; the check below refuses it.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  PTERO_REJECT_IF(file.get() < 0, io, "The file {} cannot be opened ({}).", path, system_reason());
  struct stat info{};
  PTERO_REJECT_IF(fstat(file.get(), &info) != 0, io, "The size of {} cannot be read ({}).", path,
                  system_reason());
  PTERO_REJECT_IF(!S_ISREG(info.st_mode), io, "{} is not a regular file.", path);
  if (info.st_size == 0) {
    return own_bytes({}, path);  // an empty file cannot be mapped
  }
  const std::optional<size_t> size = checked_cast<size_t>(info.st_size);
  PTERO_REJECT_IF(!size, out_of_memory,
                  "The file {} ({} bytes) does not fit in this system's address space.", path,
                  info.st_size);
  void* data = mmap(nullptr, *size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  PTERO_REJECT_IF(data == MAP_FAILED, io, "The file {} cannot be mapped ({}).", path,
                  system_reason());
  return ByteSourcePtr(std::make_shared<MappedSource>(data, *size, path));
}

#endif

}  // namespace ptero
