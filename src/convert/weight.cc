// SPDX-License-Identifier: BSD-3-Clause
#include "convert/weight.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "gguf/dequantize.h"

namespace ptero::convert {
namespace {

class GgufWeight final : public Weight {
 public:
  GgufWeight(const gguf::TensorInfo& tensor, uint64_t rows, uint64_t columns)
      : Weight(tensor.name, rows, columns),
        type_(tensor.type),
        layout_(*gguf::layout_of(tensor.type)),
        data_(tensor.data) {}

  std::string_view type_name() const override { return layout_.name; }
  uint32_t granule() const override { return layout_.elements; }

  Status read(uint64_t first, std::span<float> out) const override {
    std::vector<std::byte> buffer;
    PTERO_ASSIGN_OR_RETURN(const auto blocks, blocks_of(first, out.size(), buffer));
    return gguf::dequantize(type_, blocks, out);
  }

  bool has_groups() const override { return type_ == gguf::TensorType::q4_0; }

  Status read_groups(uint64_t first, std::span<Q4Group> out) const override {
    std::vector<std::byte> buffer;
    PTERO_ASSIGN_OR_RETURN(const auto blocks,
                           blocks_of(first * kGroupSize, out.size() * kGroupSize, buffer));
    const auto* block = reinterpret_cast<const uint8_t*>(blocks.data());
    for (Q4Group& group : out) {
      float scale = 0;
      PTERO_RETURN_IF_ERROR(gguf::dequantize(
          gguf::TensorType::f16, std::as_bytes(std::span(block, 2)), std::span(&scale, 1)));
      group.scale = scale;
      // In the file byte i holds elements i and i + 16, here 2i and 2i + 1.
      const uint8_t* nibbles = block + 2;
      for (size_t i = 0; i < 8; ++i) {
        const uint32_t even = nibbles[2 * i];
        const uint32_t odd = nibbles[2 * i + 1];
        group.bytes[i] = static_cast<uint8_t>((even & 15u) | (odd & 15u) << 4);
        group.bytes[i + 8] = static_cast<uint8_t>(even >> 4 | (odd & 0xf0u));
      }
      block += layout_.bytes;
    }
    return ok_status();
  }

 private:
  Result<std::span<const std::byte>> blocks_of(uint64_t first, uint64_t count,
                                               std::vector<std::byte>& buffer) const {
    PTERO_ASSIGN_OR_RETURN(const ByteRange range,
                           data_.subrange(first / layout_.elements * layout_.bytes,
                                          count / layout_.elements * layout_.bytes));
    if (const auto view = range.view()) {
      return *view;
    }
    buffer.resize(static_cast<size_t>(range.size()));
    PTERO_RETURN_IF_ERROR(range.read(0, buffer));
    return std::span<const std::byte>(buffer);
  }

  gguf::TensorType type_;
  gguf::BlockLayout layout_;
  ByteRange data_;
};

// A good mixer of a counter's bits (splitmix64's constants).
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// Groups of nibbles from 1 to 15: a mean of zero, a deviation of 4.32 steps.
class RandomWeight final : public Weight {
 public:
  RandomWeight(std::string name, uint64_t rows, uint64_t columns)
      : Weight(std::move(name), rows, columns) {
    for (const char c : this->name()) {
      seed_ = mixed(seed_ ^ static_cast<uint8_t>(c));
    }
    // Keeps the size of what goes through.
    scale_ = static_cast<float>(1 / (4.32 * std::sqrt(static_cast<double>(columns))));
  }

  std::string_view type_name() const override { return "random"; }
  uint32_t granule() const override { return is_vector() ? 1 : kGroupSize; }

  Status read(uint64_t first, std::span<float> out) const override {
    if (is_vector()) {
      std::ranges::fill(out, 1.0f);
      return ok_status();
    }
    for (size_t i = 0; i < out.size(); i += kGroupSize) {
      const Q4Group group = group_at((first + i) / kGroupSize);
      for (size_t k = 0; k < kGroupSize; ++k) {
        const int nibble = group.bytes[k / 2] >> (k % 2 * 4) & 15;
        out[i + k] = group.scale * static_cast<float>(nibble - 8);
      }
    }
    return ok_status();
  }

  bool has_groups() const override { return !is_vector(); }

  Status read_groups(uint64_t first, std::span<Q4Group> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = group_at(first + i);
    }
    return ok_status();
  }

 private:
  bool is_vector() const { return rows() == 1; }  // a norm

  Q4Group group_at(uint64_t index) const {
    Q4Group group;
    group.scale = scale_;
    for (size_t half = 0; half < 2; ++half) {
      const uint64_t bits = mixed(seed_ + 2 * index + half);
      for (size_t i = 0; i < 8; ++i) {
        uint32_t byte = bits >> (8 * i) & 0xffu;
        byte |= (byte & 15u) == 0 ? 8u : 0u;
        byte |= byte >> 4 == 0 ? 0x80u : 0u;
        group.bytes[half * 8 + i] = static_cast<uint8_t>(byte);
      }
    }
    return group;
  }

  uint64_t seed_ = 0;
  float scale_ = 0;
};

}  // namespace

Status Weight::read_groups(uint64_t, std::span<Q4Group>) const {
  return make_error(ErrorCode::internal, "The weight {} is not stored in groups.", name());
}

Result<WeightPtr> GgufWeights::take(std::string_view name, uint64_t rows, uint64_t columns) {
  const gguf::TensorInfo* tensor = file_.find_tensor(name);
  PTERO_REJECT_IF(tensor == nullptr, invalid_program, "The tensor {} is missing.", name);
  std::vector<uint64_t> dims = tensor->dims;
  while (dims.size() > 1 && dims.back() == 1) {
    dims.pop_back();
  }
  std::vector<uint64_t> expected = {columns};
  if (rows > 1) {
    expected.push_back(rows);
  }
  PTERO_REJECT_IF(dims != expected, invalid_program,
                  "The tensor {} has the dimensions [{}] instead of [{}], innermost first.", name,
                  fmt::join(tensor->dims, ", "), fmt::join(expected, ", "));
  PTERO_REJECT_IF(!gguf::can_dequantize(tensor->type), unsupported,
                  "The tensor {} has the type {}, which cannot be converted.", name,
                  gguf::layout_of(tensor->type)->name);
  taken_.insert(std::string(name));
  return WeightPtr(std::make_shared<GgufWeight>(*tensor, rows, columns));
}

Status GgufWeights::check_all_taken() const {
  for (const gguf::TensorInfo& tensor : file_.tensors) {
    PTERO_REJECT_IF(!taken_.contains(tensor.name) && tensor.name != "rope_freqs.weight",
                    unsupported,
                    "The tensor {} has no place in this architecture, which cannot be converted "
                    "without it.",
                    tensor.name);
  }
  return ok_status();
}

Result<WeightPtr> RandomWeights::take(std::string_view name, uint64_t rows, uint64_t columns) {
  return WeightPtr(std::make_shared<RandomWeight>(std::string(name), rows, columns));
}

}  // namespace ptero::convert
