// SPDX-License-Identifier: BSD-3-Clause
#include "base/byte_source.h"

#include <cstring>
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

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "base/checked.h"

namespace ptero {
namespace {

// Bytes in memory whoever owns them; the three sources differ in what keeps the memory alive.
class MemorySource : public ByteSource {
 public:
  uint64_t size() const override { return bytes_.size(); }

  Status read(uint64_t offset, std::span<std::byte> out) const override {
    PTERO_RETURN_IF_ERROR(check_range(offset, out.size()));
    if (!out.empty()) {
      std::memcpy(out.data(), bytes_.data() + offset, out.size());
    }
    return ok_status();
  }

  std::optional<std::span<const std::byte>> view(uint64_t offset, uint64_t size) const override {
    if (!check_range(offset, size).ok()) {
      return std::nullopt;
    }
    return bytes_.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
  }

  const std::string& name() const override { return name_; }

 protected:
  MemorySource(std::span<const std::byte> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}

 private:
  std::span<const std::byte> bytes_;
  std::string name_;
};

class BorrowedSource final : public MemorySource {
 public:
  BorrowedSource(std::span<const std::byte> bytes, std::string name)
      : MemorySource(bytes, std::move(name)) {}
};

class OwnedSource final : public MemorySource {
 public:
  // A vector's storage does not move with the vector, so the span stays valid.
  OwnedSource(std::vector<std::byte> bytes, std::string name)
      : MemorySource(bytes, std::move(name)), storage_(std::move(bytes)) {}

 private:
  std::vector<std::byte> storage_;
};

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

std::optional<std::span<const std::byte>> ByteSource::view(uint64_t, uint64_t) const {
  return std::nullopt;
}

Status ByteSource::check_range(uint64_t offset, uint64_t size) const {
  const std::optional<uint64_t> end = checked_add(offset, size);
  PTERO_REJECT_IF(!end || *end > this->size(), invalid_argument,
                  "The read of {} bytes at offset {} leaves {} ({} bytes).", size, offset, name(),
                  this->size());
  return ok_status();
}

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

ByteSourcePtr borrow_bytes(std::span<const std::byte> bytes, std::string name) {
  return std::make_shared<BorrowedSource>(bytes, std::move(name));
}

ByteSourcePtr own_bytes(std::vector<std::byte> bytes, std::string name) {
  return std::make_shared<OwnedSource>(std::move(bytes), std::move(name));
}

Result<ByteRange> ByteRange::make(ByteSourcePtr source, uint64_t offset, uint64_t size) {
  return whole(std::move(source)).subrange(offset, size);
}

ByteRange ByteRange::whole(ByteSourcePtr source) {
  const uint64_t size = source == nullptr ? 0 : source->size();
  return ByteRange(std::move(source), 0, size);
}

Result<ByteRange> ByteRange::subrange(uint64_t offset, uint64_t size) const {
  const std::optional<uint64_t> end = checked_add(offset, size);
  PTERO_REJECT_IF(!end || *end > size_, invalid_argument,
                  "The part of {} bytes at offset {} leaves its range ({} bytes).", size, offset,
                  size_);
  return ByteRange(source_, offset_ + offset, size);
}

Status ByteRange::read(uint64_t offset, std::span<std::byte> out) const {
  PTERO_ASSIGN_OR_RETURN(const ByteRange part, subrange(offset, out.size()));
  if (out.empty()) {
    return ok_status();
  }
  return source_->read(part.offset_, out);
}

std::optional<std::span<const std::byte>> ByteRange::view() const {
  if (empty()) {
    return std::span<const std::byte>();
  }
  return source_->view(offset_, size_);
}

Result<std::vector<std::byte>> ByteRange::copy(uint64_t limit) const {
  PTERO_REJECT_IF(size_ > limit, out_of_memory,
                  "The copy of {} bytes exceeds the limit ({} bytes).", size_, limit);
  std::vector<std::byte> bytes(static_cast<size_t>(size_));
  PTERO_RETURN_IF_ERROR(read(0, bytes));
  return bytes;
}

}  // namespace ptero
