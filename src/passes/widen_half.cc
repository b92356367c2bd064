// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/half.h"
#include "passes/passes.h"

namespace ptero::passes {
namespace {

// Half-precision bytes, read as single-precision ones.
class WideSource : public ByteSource {
 public:
  explicit WideSource(ByteRange halves)
      : halves_(std::move(halves)),
        name_(halves_.source() != nullptr ? halves_.source()->name() : "nothing") {}

  uint64_t size() const override { return halves_.size() / sizeof(uint16_t) * sizeof(float); }
  const std::string& name() const override { return name_; }

  Status read(uint64_t offset, std::span<std::byte> out) const override {
    PTERO_RETURN_IF_ERROR(check_range(offset, out.size()));
    constexpr uint64_t kStep = 4096;  // elements
    std::vector<uint16_t> halves(kStep);
    std::vector<float> floats(kStep);
    while (!out.empty()) {
      const uint64_t first = offset / sizeof(float);
      const uint64_t skipped = offset % sizeof(float);
      const uint64_t count = std::min(kStep, size() / sizeof(float) - first);
      PTERO_RETURN_IF_ERROR(halves_.read(first * sizeof(uint16_t),
                                         std::as_writable_bytes(std::span(halves).first(count))));
      std::transform(halves.begin(), halves.begin() + static_cast<ptrdiff_t>(count), floats.begin(),
                     half_to_float);
      const uint64_t bytes = std::min<uint64_t>(count * sizeof(float) - skipped, out.size());
      std::memcpy(out.data(), reinterpret_cast<const std::byte*>(floats.data()) + skipped, bytes);
      out = out.subspan(bytes);
      offset += bytes;
    }
    return ok_status();
  }

 private:
  ByteRange halves_;
  std::string name_;
};

}  // namespace

Status widen_half(pte::Graph& graph, const graph::DeviceFacts& device) {
  if (device.features.contains(gpu::Feature::shader_f16)) {
    return ok_status();
  }
  std::vector<bool> has_half(graph.constants.size());
  std::vector<bool> has_other(graph.constants.size());
  for (pte::GraphValue& value : graph.values) {
    auto* tensor = std::get_if<pte::GraphTensor>(&value);
    if (tensor == nullptr) {
      continue;
    }
    const bool is_half = tensor->dtype == pte::GraphDtype::float16;
    if (tensor->constant_id) {
      (is_half ? has_half : has_other)[*tensor->constant_id] = true;
    }
    if (is_half) {
      tensor->dtype = pte::GraphDtype::float32;
    }
  }
  for (size_t i = 0; i < graph.constants.size(); ++i) {
    if (!has_half[i]) {
      continue;
    }
    pte::GraphConstant& constant = graph.constants[i];
    PTERO_REJECT_IF(has_other[i], unsupported,
                    "Constant {} is of half precision for one tensor and of another type for "
                    "another; that takes a device with shader-f16.",
                    i);
    constant.data = ByteRange::whole(std::make_shared<WideSource>(constant.data));
  }
  return ok_status();
}

const std::vector<graph::GraphPass>& standard_passes() {
  static const std::vector<graph::GraphPass> passes = {widen_half};
  return passes;
}

}  // namespace ptero::passes
