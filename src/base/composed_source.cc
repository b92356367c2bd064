// SPDX-License-Identifier: BSD-3-Clause
#include "base/composed_source.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/checked.h"

namespace ptero {
namespace {

class ComposedSource final : public ByteSource {
 public:
  ComposedSource(uint64_t size, std::vector<PlacedBytes> parts, std::string name)
      : size_(size), parts_(std::move(parts)), name_(std::move(name)) {}

  uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

  Status read(uint64_t offset, std::span<std::byte> out) const override {
    PTERO_RETURN_IF_ERROR(check_range(offset, out.size()));
    for (auto part = first_part_after(offset); !out.empty(); ++part) {
      const uint64_t start = part == parts_.end() ? size_ : part->offset;
      if (offset < start) {
        const size_t gap = static_cast<size_t>(std::min<uint64_t>(start - offset, out.size()));
        std::ranges::fill(out.first(gap), std::byte{0});
        out = out.subspan(gap);
        offset += gap;
      }
      if (out.empty()) {
        break;
      }
      const uint64_t inside = offset - start;
      const size_t taken =
          static_cast<size_t>(std::min<uint64_t>(part->bytes.size() - inside, out.size()));
      PTERO_RETURN_IF_ERROR(part->bytes.read(inside, out.first(taken)));
      out = out.subspan(taken);
      offset += taken;
    }
    return ok_status();
  }

  std::optional<std::span<const std::byte>> view(uint64_t offset, uint64_t size) const override {
    const auto part = first_part_after(offset);
    if (!check_range(offset, size).ok() || part == parts_.end() || offset < part->offset) {
      return std::nullopt;
    }
    const Result<ByteRange> range = part->bytes.subrange(offset - part->offset, size);
    return range.ok() ? range->view() : std::nullopt;
  }

 private:
  // The first part that ends behind `offset`: the one that holds it, or the next one.
  std::vector<PlacedBytes>::const_iterator first_part_after(uint64_t offset) const {
    return std::ranges::upper_bound(parts_, offset, {}, [](const PlacedBytes& part) {
      return part.offset + part.bytes.size();
    });
  }

  uint64_t size_;
  std::vector<PlacedBytes> parts_;  // none empty, in order, without overlap
  std::string name_;
};

class GeneratedSource final : public ByteSource {
 public:
  GeneratedSource(uint64_t size, ByteGenerator generator, std::string name)
      : size_(size), generator_(std::move(generator)), name_(std::move(name)) {}

  uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

  Status read(uint64_t offset, std::span<std::byte> out) const override {
    PTERO_RETURN_IF_ERROR(check_range(offset, out.size()));
    const std::lock_guard lock(mutex_);
    return generator_(offset, out);
  }

 private:
  uint64_t size_;
  ByteGenerator generator_;
  std::string name_;
  mutable std::mutex mutex_;
};

}  // namespace

Result<ByteSourcePtr> compose_bytes(uint64_t size, std::vector<PlacedBytes> parts,
                                    std::string name) {
  uint64_t end = 0;
  for (const PlacedBytes& part : parts) {
    PTERO_REJECT_IF(part.offset < end, internal,
                    "The part at offset {} of {} starts before the end of its predecessor ({}).",
                    part.offset, name, end);
    const std::optional<uint64_t> part_end = checked_add(part.offset, part.bytes.size());
    PTERO_REJECT_IF(!part_end || *part_end > size, internal,
                    "The part of {} bytes at offset {} leaves {} ({} bytes).", part.bytes.size(),
                    part.offset, name, size);
    end = *part_end;
  }
  std::erase_if(parts, [](const PlacedBytes& part) { return part.bytes.empty(); });
  return ByteSourcePtr(std::make_shared<ComposedSource>(size, std::move(parts), std::move(name)));
}

ByteSourcePtr generate_bytes(uint64_t size, ByteGenerator generator, std::string name) {
  return std::make_shared<GeneratedSource>(size, std::move(generator), std::move(name));
}

Status copy_bytes(const ByteSource& source,
                  const std::function<Status(std::span<const std::byte>)>& sink) {
  std::vector<std::byte> buffer;
  for (uint64_t offset = 0; offset < source.size();) {
    const uint64_t left = source.size() - offset;
    const size_t piece = static_cast<size_t>(std::min<uint64_t>(left, kCopyPieceSize));
    if (const auto view = source.view(offset, piece)) {
      PTERO_RETURN_IF_ERROR(sink(*view));
    } else {
      buffer.resize(piece);
      PTERO_RETURN_IF_ERROR(source.read(offset, buffer));
      PTERO_RETURN_IF_ERROR(sink(buffer));
    }
    offset += piece;
  }
  return ok_status();
}

}  // namespace ptero
