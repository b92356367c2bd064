// SPDX-License-Identifier: BSD-3-Clause
// Private to src/convert: a weight as the bytes of a constant, made when they are read.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/byte_source.h"
#include "convert/weight.h"
#include "pte/values.h"

namespace ptero::convert {

// The three constants that a 4-bit matrix becomes. The scales are found with the nibbles; they are
// kept from then until each source of scales that was asked for has been read to its end, so that
// reading nibbles first and scales next does the work once.
class Q4Matrix : public std::enable_shared_from_this<Q4Matrix> {
 public:
  // columns() of the weight is a multiple of 32.
  static std::shared_ptr<Q4Matrix> make(WeightPtr weight, unsigned threads);

  uint64_t groups() const { return weight_->columns() / kGroupSize; }
  // Rows of the weight, padded to a multiple of 4.
  uint64_t padded_rows() const;

  ByteSourcePtr nibbles();           // uint8 [rows, columns / 2]
  ByteSourcePtr linear_scales();     // float32 [groups, padded rows]
  ByteSourcePtr embedding_scales();  // float32 [rows, groups]

 private:
  Q4Matrix(WeightPtr weight, unsigned threads) : weight_(std::move(weight)), threads_(threads) {}

  Status read_nibbles(uint64_t offset, std::span<std::byte> out);
  Status read_scales(bool transposed, uint64_t offset, std::span<std::byte> out);
  // Groups [first, end), to `out` if it is not empty, and their scales.
  Status make_groups(uint64_t first, uint64_t end, uint64_t out_offset, std::span<std::byte> out);
  ByteSourcePtr scales_source(bool transposed, uint64_t size);

  WeightPtr weight_;
  unsigned threads_;
  std::mutex mutex_;
  std::vector<float> scales_;   // [rows, groups]; empty until it is needed
  std::vector<uint8_t> known_;  // by chunk of groups: whether its scales are
  uint32_t scale_sources_ = 0;
  uint32_t scale_sources_read_ = 0;
};

// Elements as float32 or float16; numbers beyond float16 become its largest, as from the exporter.
ByteSourcePtr float_bytes(WeightPtr weight, pte::GraphDtype dtype, unsigned threads);

// Calls work(i) for each i below count on that many threads; the first error comes back.
Status parallel_for(uint64_t count, unsigned threads, const std::function<Status(uint64_t)>& work);

}  // namespace ptero::convert
