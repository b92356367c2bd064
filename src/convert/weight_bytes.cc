// SPDX-License-Identifier: BSD-3-Clause
#include "convert/weight_bytes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/composed_source.h"
#include "base/half.h"
#include "convert/q4_groups.h"

namespace ptero::convert {
namespace {

// What one thread does at a time: 32,768 elements, a multiple of every block.
constexpr uint64_t kChunkGroups = 1024;
constexpr uint64_t kChunkElements = kChunkGroups * kGroupSize;
constexpr uint64_t kGroupBytes = kGroupSize / 2;

// Copies the part of `piece`, which stands at `piece_offset`, that lies in `out` at `out_offset`.
void copy_overlap(std::span<const std::byte> piece, uint64_t piece_offset, std::span<std::byte> out,
                  uint64_t out_offset) {
  const uint64_t start = std::max(piece_offset, out_offset);
  const uint64_t end = std::min(piece_offset + piece.size(), out_offset + out.size());
  if (start < end) {
    std::memcpy(out.data() + (start - out_offset), piece.data() + (start - piece_offset),
                static_cast<size_t>(end - start));
  }
}

}  // namespace

Status parallel_for(uint64_t count, unsigned threads, const std::function<Status(uint64_t)>& work) {
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  std::optional<Error> failure;
  const auto loop = [&] {
    for (uint64_t i = next++; i < count; i = next++) {
      if (Status status = work(i); !status.ok()) {
        const std::lock_guard lock(mutex);
        failure = failure ? failure : std::move(status).error();
        next = count;
      }
    }
  };
  std::vector<std::thread> helpers;
  for (uint64_t i = 1; i < std::min<uint64_t>(threads, count); ++i) {
    helpers.emplace_back(loop);
  }
  loop();
  for (std::thread& helper : helpers) {
    helper.join();
  }
  if (failure) {
    return *std::move(failure);
  }
  return ok_status();
}

std::shared_ptr<Q4Matrix> Q4Matrix::make(WeightPtr weight, unsigned threads) {
  return std::shared_ptr<Q4Matrix>(new Q4Matrix(std::move(weight), threads));
}

uint64_t Q4Matrix::padded_rows() const {
  return ceil_div<uint64_t>(weight_->rows(), 4) * 4;
}

ByteSourcePtr Q4Matrix::nibbles() {
  return generate_bytes(
      weight_->elements() / 2,
      [self = shared_from_this()](uint64_t offset, std::span<std::byte> out) {
        return self->read_nibbles(offset, out);
      },
      weight_->name());
}

ByteSourcePtr Q4Matrix::scales_source(bool transposed, uint64_t size) {
  ++scale_sources_;
  return generate_bytes(
      size * sizeof(float),
      [self = shared_from_this(), transposed](uint64_t offset, std::span<std::byte> out) {
        return self->read_scales(transposed, offset, out);
      },
      weight_->name());
}

ByteSourcePtr Q4Matrix::linear_scales() {
  return scales_source(true, groups() * padded_rows());
}

ByteSourcePtr Q4Matrix::embedding_scales() {
  return scales_source(false, groups() * weight_->rows());
}

Status Q4Matrix::make_groups(uint64_t first, uint64_t end, uint64_t out_offset,
                             std::span<std::byte> out) {
  const uint64_t total = weight_->elements() / kGroupSize;
  if (scales_.empty()) {
    scales_.resize(static_cast<size_t>(total));
    known_.assign(static_cast<size_t>(ceil_div(total, kChunkGroups)), 0);
  }
  // Whole chunks: a piece that ends within one does it twice, which costs next to nothing.
  const uint64_t first_chunk = first / kChunkGroups;
  const uint64_t chunks = ceil_div(end, kChunkGroups) - first_chunk;
  return parallel_for(chunks, threads_, [&](uint64_t i) -> Status {
    const uint64_t chunk = first_chunk + i;
    const uint64_t start = chunk * kChunkGroups;
    const auto count = static_cast<size_t>(std::min(kChunkGroups, total - start));
    if (out.empty() && known_[static_cast<size_t>(chunk)] != 0) {
      return ok_status();
    }
    std::vector<Q4Group> made(count);
    if (weight_->has_groups()) {
      PTERO_RETURN_IF_ERROR(weight_->read_groups(start, made));
    } else {
      std::vector<float> values(count * kGroupSize);
      PTERO_RETURN_IF_ERROR(weight_->read(start * kGroupSize, values));
      for (size_t k = 0; k < count; ++k) {
        made[k] = nearest_group(
            std::span<const float, kGroupSize>(&values[k * kGroupSize], size_t{kGroupSize}));
      }
    }
    for (size_t k = 0; k < count; ++k) {
      scales_[static_cast<size_t>(start) + k] = made[k].scale;
      copy_overlap(std::as_bytes(std::span(made[k].bytes)), (start + k) * kGroupBytes, out,
                   out_offset);
    }
    known_[static_cast<size_t>(chunk)] = 1;
    return ok_status();
  });
}

Status Q4Matrix::read_nibbles(uint64_t offset, std::span<std::byte> out) {
  if (out.empty()) {
    return ok_status();
  }
  const std::lock_guard lock(mutex_);
  return make_groups(offset / kGroupBytes, ceil_div(offset + out.size(), kGroupBytes), offset, out);
}

Status Q4Matrix::read_scales(bool transposed, uint64_t offset, std::span<std::byte> out) {
  if (out.empty()) {
    return ok_status();
  }
  const std::lock_guard lock(mutex_);
  const uint64_t rows = weight_->rows();
  PTERO_RETURN_IF_ERROR(make_groups(0, rows * groups(), 0, {}));
  const uint64_t width = transposed ? padded_rows() : groups();
  const uint64_t end = offset + out.size();
  for (uint64_t i = offset / sizeof(float); i < ceil_div<uint64_t>(end, sizeof(float)); ++i) {
    const uint64_t row = transposed ? i % width : i / width;
    const uint64_t group = transposed ? i / width : i % width;
    // Padding reads as zero.
    const float scale = row < rows ? scales_[static_cast<size_t>(row * groups() + group)] : 0.0f;
    copy_overlap(std::as_bytes(std::span(&scale, 1)), i * sizeof(float), out, offset);
  }
  const uint64_t size = groups() * (transposed ? padded_rows() : rows) * sizeof(float);
  if (end == size && ++scale_sources_read_ == scale_sources_) {
    // Assigning {} would keep the memory.
    scales_ = std::vector<float>();
    known_ = std::vector<uint8_t>();
    scale_sources_read_ = 0;
  }
  return ok_status();
}

ByteSourcePtr float_bytes(WeightPtr weight, pte::GraphDtype dtype, unsigned threads) {
  const bool half = dtype == pte::GraphDtype::float16;
  const uint64_t item = half ? 2 : 4;
  const uint64_t size = weight->elements() * item;
  const std::string name = weight->name();
  return generate_bytes(
      size,
      [weight = std::move(weight), threads, half, item](uint64_t offset, std::span<std::byte> out) {
        const uint64_t first_chunk = offset / (kChunkElements * item);
        const uint64_t end_chunk = ceil_div(offset + out.size(), kChunkElements * item);
        return parallel_for(end_chunk - first_chunk, threads, [&](uint64_t i) -> Status {
          const uint64_t start = (first_chunk + i) * kChunkElements;
          std::vector<float> values(
              static_cast<size_t>(std::min(kChunkElements, weight->elements() - start)));
          PTERO_RETURN_IF_ERROR(weight->read(start, values));
          if (!half) {
            copy_overlap(std::as_bytes(std::span(values)), start * item, out, offset);
            return ok_status();
          }
          constexpr float kLargest = 65504;
          std::vector<uint16_t> halves(values.size());
          for (size_t k = 0; k < values.size(); ++k) {
            halves[k] = float_to_half(std::clamp(values[k], -kLargest, kLargest));
          }
          copy_overlap(std::as_bytes(std::span(halves)), start * item, out, offset);
          return ok_status();
        });
      },
      name);
}

}  // namespace ptero::convert
