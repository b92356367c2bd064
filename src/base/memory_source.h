// SPDX-License-Identifier: BSD-3-Clause
// Private to src/base: what sources in memory have in common. They differ in what keeps it alive.
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/byte_source.h"

namespace ptero {

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

}  // namespace ptero
