// SPDX-License-Identifier: BSD-3-Clause
#include "pte/flatbuffer_output.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/composed_source.h"
#include "pte/limits.h"

namespace ptero::pte {
namespace {

void append_number(std::vector<std::byte>& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    out.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
}

}  // namespace

bool FlatbufferOutput::reserve(uint64_t size) {
  constexpr uint64_t kRoomForPadding = 4096;  // and for the header that is put in later
  if (!status_.ok()) {
    return false;
  }
  const std::optional<uint64_t> total = checked_add<uint64_t>(builder_.GetSize(), size);
  if (!total || *total > kMaxFlatbufferSize - kRoomForPadding) {
    status_ = make_error(ErrorCode::invalid_program,
                         "The part of the file outside of its segments exceeds the limit ({} "
                         "bytes); large constants and delegates belong in segments.",
                         kMaxFlatbufferSize);
    return false;
  }
  return true;
}

flatbuffers::Offset<flatbuffers::String> FlatbufferOutput::string(std::string_view text) {
  return reserve(text.size() + 1) ? builder_.CreateString(text.data(), text.size()) : 0;
}

flatbuffers::Offset<flatbuffers::String> FlatbufferOutput::optional_string(
    const std::optional<std::string>& text) {
  return text ? string(std::string_view(*text)) : 0;
}

FlatbufferOutput::Vector<uint8_t> FlatbufferOutput::bytes(const ByteRange& data) {
  if (!reserve(data.size())) {
    return 0;
  }
  const size_t size = static_cast<size_t>(data.size());
  builder_.ForceVectorAlignment(size, 1, 16);
  uint8_t* target = nullptr;
  const auto offset = builder_.CreateUninitializedVector(size, &target);
  if (Status status = data.read(0, std::as_writable_bytes(std::span(target, size))); !status.ok()) {
    status_ = std::move(status);
    return 0;
  }
  return offset;
}

std::vector<std::byte> FlatbufferOutput::finished() const {
  const auto* data = reinterpret_cast<const std::byte*>(builder_.GetBufferPointer());
  return {data, data + builder_.GetSize()};
}

Result<SegmentPlan> plan_segments(const std::vector<ByteRange>& segments) {
  SegmentPlan plan;
  plan.places.reserve(segments.size());
  for (const ByteRange& segment : segments) {
    const std::optional<uint64_t> offset = checked_round_up(plan.data_size, kSegmentAlignment);
    const std::optional<uint64_t> end =
        offset ? checked_add(*offset, segment.size()) : std::nullopt;
    PTERO_REJECT_IF(!end, invalid_program,
                    "The segments together exceed the limit of the file format ({} bytes).",
                    UINT64_MAX);
    plan.places.push_back({*offset, segment.size()});
    plan.data_size = *end;
  }
  return plan;
}

Result<ByteSourcePtr> compose_container(std::vector<std::byte> head, uint64_t segment_base,
                                        const SegmentPlan& plan,
                                        const std::vector<ByteRange>& segments, std::string name) {
  const uint64_t head_size = head.size();
  std::vector<PlacedBytes> parts = {{0, ByteRange::whole(own_bytes(std::move(head), name))}};
  for (size_t i = 0; i < segments.size(); ++i) {
    const std::optional<uint64_t> offset = checked_add(segment_base, plan.places[i].offset);
    PTERO_REJECT_IF(!offset, invalid_program,
                    "The segments together exceed the limit of the file format ({} bytes).",
                    UINT64_MAX);
    parts.push_back({*offset, segments[i]});
  }
  const std::optional<uint64_t> size = checked_add(segment_base, plan.data_size);
  PTERO_REJECT_IF(!size, invalid_program,
                  "The segments together exceed the limit of the file format ({} bytes).",
                  UINT64_MAX);
  return compose_bytes(std::max(*size, head_size), std::move(parts), std::move(name));
}

std::vector<std::byte> insert_header(const std::vector<std::byte>& flatbuffer,
                                     const std::vector<std::byte>& header) {
  constexpr ptrdiff_t kRootAndIdentifier = 8;
  uint32_t root = 0;
  for (size_t i = 0; i < 4; ++i) {
    root |= std::to_integer<uint32_t>(flatbuffer[i]) << (8 * i);
  }
  std::vector<std::byte> out;
  out.reserve(flatbuffer.size() + header.size());
  append_u32(out, root + static_cast<uint32_t>(header.size()));
  out.insert(out.end(), flatbuffer.begin() + 4, flatbuffer.begin() + kRootAndIdentifier);
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), flatbuffer.begin() + kRootAndIdentifier, flatbuffer.end());
  return out;
}

void append_u16(std::vector<std::byte>& out, uint16_t value) {
  append_number(out, value, 2);
}
void append_u32(std::vector<std::byte>& out, uint32_t value) {
  append_number(out, value, 4);
}
void append_u64(std::vector<std::byte>& out, uint64_t value) {
  append_number(out, value, 8);
}
void append_text(std::vector<std::byte>& out, std::string_view text) {
  for (const char c : text) {
    out.push_back(static_cast<std::byte>(c));
  }
}

}  // namespace ptero::pte
