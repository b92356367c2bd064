// SPDX-License-Identifier: BSD-3-Clause
// Private to src/gguf: reading a file from front to back, never past its end.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "gguf/limits.h"

namespace ptero::gguf {

// What is being read, put into words only for an error.
struct Field {
  std::string_view what;  // "length of the name"
  std::string_view of;    // "tensor 3"; empty: nothing more to say
  uint64_t index = UINT64_MAX;

  std::string text() const;
};

class Input {
 public:
  explicit Input(ByteRange file) : file_(std::move(file)), view_(file_.view()) {}

  uint64_t offset() const { return offset_; }
  uint64_t left() const { return file_.size() - offset_; }
  const ByteRange& file() const { return file_; }

  template <typename T>
  Result<T> number(const Field& field) {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    PTERO_RETURN_IF_ERROR(read(std::as_writable_bytes(std::span(&value, 1)), field));
    return value;
  }

  // A length and as many bytes of UTF-8.
  Result<std::string> string(const Field& field, uint64_t max_size);
  // The same without a copy: looked at, or in `buffer`.
  Result<std::string_view> string_view(const Field& field, uint64_t max_size,
                                       std::vector<char>& buffer);

  Status read(std::span<std::byte> out, const Field& field);
  Status skip(uint64_t size, const Field& field);

 private:
  Status fill(std::span<std::byte> out);

  ByteRange file_;
  std::optional<std::span<const std::byte>> view_;
  uint64_t offset_ = 0;
  // A source that cannot be looked at is read this much at a time.
  static constexpr size_t kWindowSize = size_t{64} << 10;
  std::vector<std::byte> window_;
  uint64_t window_offset_ = 0;
};

bool is_utf8(std::string_view text);

}  // namespace ptero::gguf
