// SPDX-License-Identifier: BSD-3-Clause
// GGUF files made in memory, for tests: right ones, and ones that lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "gguf/gguf.h"

namespace ptero::gguf::test {

using Bytes = std::vector<std::byte>;

template <typename T>
void append(Bytes& out, T value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}
inline void append_raw(Bytes& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}
inline void append_string(Bytes& out, std::string_view text) {
  append(out, uint64_t{text.size()});
  append_raw(out, std::as_bytes(std::span(text)));
}

// Keys and tensors are bytes already, so that a test can put anything there.
struct TestFile {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> tensor_count;  // instead of the right one
  std::optional<uint64_t> key_count;
  std::vector<Bytes> keys;
  std::vector<Bytes> tensors;
  Bytes data;
  uint64_t alignment = 32;
  bool padded = true;

  // The head of a pair; its value follows.
  Bytes& key(std::string_view name, ValueType type) {
    Bytes& out = keys.emplace_back();
    append_string(out, name);
    append(out, type);
    return out;
  }
  template <typename T>
  void number(std::string_view name, ValueType type, T value) {
    append(key(name, type), value);
  }
  void u32(std::string_view name, uint32_t value) { number(name, ValueType::uint32, value); }
  void f32(std::string_view name, float value) { number(name, ValueType::float32, value); }
  void boolean(std::string_view name, bool value) {
    number(name, ValueType::boolean, static_cast<uint8_t>(value ? 1 : 0));
  }
  void text(std::string_view name, std::string_view value) {
    append_string(key(name, ValueType::string), value);
  }
  void strings(std::string_view name, const std::vector<std::string>& items) {
    Bytes& out = array(name, ValueType::string, items.size());
    for (const std::string& item : items) {
      append_string(out, item);
    }
  }
  template <typename T>
  void numbers(std::string_view name, ValueType type, const std::vector<T>& items) {
    Bytes& out = array(name, type, items.size());
    append_raw(out, std::as_bytes(std::span(items)));
  }
  Bytes& array(std::string_view name, ValueType type, uint64_t count) {
    Bytes& out = key(name, ValueType::array);
    append(out, type);
    append(out, count);
    return out;
  }

  // A tensor's description, whatever its data.
  void info(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
            uint64_t offset) {
    Bytes& out = tensors.emplace_back();
    append_string(out, name);
    append(out, static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) {
      append(out, dim);
    }
    append(out, type);
    append(out, offset);
  }
  // A tensor with its data, behind those before.
  void tensor(std::string_view name, const std::vector<uint64_t>& dims, TensorType type,
              std::span<const std::byte> bytes) {
    info(name, dims, static_cast<uint32_t>(type), data.size());
    append_raw(data, bytes);
    data.resize((data.size() + alignment - 1) / alignment * alignment);
  }
  void tensor(std::string_view name, const std::vector<uint64_t>& dims,
              const std::vector<float>& values) {
    tensor(name, dims, TensorType::f32, std::as_bytes(std::span(values)));
  }

  Bytes bytes() const {
    Bytes out;
    append_raw(out, std::as_bytes(std::span(magic)));
    append(out, version);
    append(out, tensor_count.value_or(tensors.size()));
    append(out, key_count.value_or(keys.size()));
    for (const auto& part : {keys, tensors}) {
      for (const Bytes& entry : part) {
        append_raw(out, entry);
      }
    }
    if (padded) {
      out.resize((out.size() + alignment - 1) / alignment * alignment);
    }
    append_raw(out, data);
    return out;
  }
  ByteRange range() const { return ByteRange::whole(own_bytes(bytes(), "test.gguf")); }
};

}  // namespace ptero::gguf::test
