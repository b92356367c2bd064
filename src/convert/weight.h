// SPDX-License-Identifier: BSD-3-Clause
// Private to src/convert: where the numbers of a weight come from.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "gguf/gguf.h"

namespace ptero::convert {

// 32 elements of et_vk.linear_q4gsw and et_vk.embedding_q4gsw: two in a byte, the even one in the
// low nibble, 8 standing for zero.
inline constexpr uint32_t kGroupSize = 32;
struct Q4Group {
  float scale = 0;
  std::array<uint8_t, kGroupSize / 2> bytes = {};
};

// Row-major [rows, columns]; a vector is one row. Methods may be called from several threads.
class Weight {
 public:
  virtual ~Weight() = default;

  const std::string& name() const { return name_; }
  uint64_t rows() const { return rows_; }
  uint64_t columns() const { return columns_; }
  uint64_t elements() const { return rows_ * columns_; }

  // What it is stored as.
  virtual std::string_view type_name() const = 0;
  // Elements are read in multiples of this.
  virtual uint32_t granule() const = 0;
  // `first` and out.size() are multiples of the granule and inside.
  virtual Status read(uint64_t first, std::span<float> out) const = 0;

  // Whether it is stored in groups that a 4-bit operator takes as they are.
  virtual bool has_groups() const { return false; }
  virtual Status read_groups(uint64_t first, std::span<Q4Group> out) const;

 protected:
  Weight(std::string name, uint64_t rows, uint64_t columns)
      : name_(std::move(name)), rows_(rows), columns_(columns) {}

 private:
  std::string name_;
  uint64_t rows_;
  uint64_t columns_;
};
using WeightPtr = std::shared_ptr<const Weight>;

class WeightSet {
 public:
  virtual ~WeightSet() = default;
  virtual bool has(std::string_view name) const = 0;
  // Code invalid_program when it is missing or has another shape; rows 1 is a vector.
  virtual Result<WeightPtr> take(std::string_view name, uint64_t rows, uint64_t columns) = 0;
};

class GgufWeights final : public WeightSet {
 public:
  // `file` outlives this, not what take() returns.
  explicit GgufWeights(const gguf::File& file) : file_(file) {}

  bool has(std::string_view name) const override { return file_.find_tensor(name) != nullptr; }
  Result<WeightPtr> take(std::string_view name, uint64_t rows, uint64_t columns) override;

  // Code unsupported when the file has a tensor that nobody took.
  Status check_all_taken() const;

 private:
  const gguf::File& file_;
  std::set<std::string, std::less<>> taken_;
};

// Made from a counter; the same on every machine. `names` says which optional tensors there are.
class RandomWeights final : public WeightSet {
 public:
  explicit RandomWeights(std::set<std::string, std::less<>> optional)
      : optional_(std::move(optional)) {}

  bool has(std::string_view name) const override { return optional_.contains(name); }
  Result<WeightPtr> take(std::string_view name, uint64_t rows, uint64_t columns) override;

 private:
  std::set<std::string, std::less<>> optional_;
};

}  // namespace ptero::convert
