// SPDX-License-Identifier: BSD-3-Clause
#include "gguf/input.h"

#include <algorithm>
#include <utility>

namespace ptero::gguf {

static_assert(std::endian::native == std::endian::little, "numbers are read as they stand");

std::string Field::text() const {
  std::string text(what);
  if (index != UINT64_MAX) {
    text += fmt::format(" {}", index);
  }
  if (!of.empty()) {
    text += fmt::format(" of {}", of);
  }
  return text;
}

Status Input::fill(std::span<std::byte> out) {
  if (view_) {
    std::copy_n(view_->begin() + static_cast<ptrdiff_t>(offset_), out.size(), out.begin());
    return ok_status();
  }
  if (out.size() > kWindowSize) {
    return file_.read(offset_, out);
  }
  if (offset_ < window_offset_ || offset_ + out.size() > window_offset_ + window_.size()) {
    window_.resize(static_cast<size_t>(std::min<uint64_t>(kWindowSize, left())));
    window_offset_ = offset_;
    PTERO_RETURN_IF_ERROR(file_.read(offset_, window_));
  }
  std::copy_n(window_.begin() + static_cast<ptrdiff_t>(offset_ - window_offset_), out.size(),
              out.begin());
  return ok_status();
}

Status Input::read(std::span<std::byte> out, const Field& field) {
  PTERO_REJECT_IF(out.size() > left(), invalid_program,
                  "The file ends at byte {}, within the {} (at byte {}).", file_.size(),
                  field.text(), offset_);
  PTERO_RETURN_IF_ERROR(fill(out));
  offset_ += out.size();
  return ok_status();
}

Status Input::skip(uint64_t size, const Field& field) {
  PTERO_REJECT_IF(size > left(), invalid_program,
                  "The {} ({} bytes at byte {}) exceeds the file's {} bytes.", field.text(), size,
                  offset_, file_.size());
  offset_ += size;
  return ok_status();
}

Result<std::string_view> Input::string_view(const Field& field, uint64_t max_size,
                                            std::vector<char>& buffer) {
  const uint64_t start = offset_;
  PTERO_ASSIGN_OR_RETURN(const auto size, number<uint64_t>(field));
  PTERO_REJECT_IF(size > left(), invalid_program,
                  "The {} (length {} at byte {}) exceeds the file's {} bytes.", field.text(), size,
                  start, file_.size());
  PTERO_REJECT_IF(size > max_size, invalid_program, "The {} has {} bytes; the limit is {}.",
                  field.text(), size, max_size);
  std::string_view text;
  if (view_) {
    text = {reinterpret_cast<const char*>(view_->data()) + offset_, static_cast<size_t>(size)};
    offset_ += size;
  } else {
    buffer.resize(static_cast<size_t>(size));
    PTERO_RETURN_IF_ERROR(read(std::as_writable_bytes(std::span(buffer)), field));
    text = {buffer.data(), buffer.size()};
  }
  PTERO_REJECT_IF(!is_utf8(text), invalid_program, "The {} (at byte {}) is no UTF-8 text.",
                  field.text(), start);
  return text;
}

Result<std::string> Input::string(const Field& field, uint64_t max_size) {
  std::vector<char> buffer;
  PTERO_ASSIGN_OR_RETURN(const std::string_view text, string_view(field, max_size, buffer));
  return std::string(text);
}

bool is_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  for (size_t i = 0; i < text.size();) {
    const uint8_t first = byte(i);
    if (first < 0x80) {
      ++i;
      continue;
    }
    // The first byte says the length; the smallest code point of it rules out longer forms.
    const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (first < 0xc2 || first > 0xf4 || text.size() - i < length) {
      return false;
    }
    uint32_t code = first & (0xffu >> (length + 1));
    for (size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xc0u) != 0x80) {
        return false;
      }
      code = code << 6 | (byte(i + k) & 0x3fu);
    }
    if (code < kSmallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
      return false;
    }
    i += length;
  }
  return true;
}

}  // namespace ptero::gguf
