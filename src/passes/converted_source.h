// SPDX-License-Identifier: BSD-3-Clause
// Bytes of one element type, read as those of another.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_source.h"

namespace ptero::passes {

template <typename From, typename To>
class ConvertedSource : public ByteSource {
 public:
  ConvertedSource(ByteRange bytes, To (*convert)(From))
      : bytes_(std::move(bytes)),
        convert_(convert),
        name_(bytes_.source() != nullptr ? bytes_.source()->name() : "nothing") {}

  uint64_t size() const override { return bytes_.size() / sizeof(From) * sizeof(To); }
  const std::string& name() const override { return name_; }

  Status read(uint64_t offset, std::span<std::byte> out) const override {
    PTERO_RETURN_IF_ERROR(check_range(offset, out.size()));
    constexpr uint64_t kStep = 4096;  // elements
    std::vector<From> from(kStep);
    std::vector<To> to(kStep);
    while (!out.empty()) {
      const uint64_t first = offset / sizeof(To);
      const uint64_t skipped = offset % sizeof(To);
      const uint64_t count = std::min(kStep, size() / sizeof(To) - first);
      PTERO_RETURN_IF_ERROR(
          bytes_.read(first * sizeof(From), std::as_writable_bytes(std::span(from).first(count))));
      std::transform(from.begin(), from.begin() + static_cast<ptrdiff_t>(count), to.begin(),
                     convert_);
      const uint64_t size = std::min<uint64_t>(count * sizeof(To) - skipped, out.size());
      std::memcpy(out.data(), reinterpret_cast<const std::byte*>(to.data()) + skipped, size);
      out = out.subspan(size);
      offset += size;
    }
    return ok_status();
  }

 private:
  ByteRange bytes_;
  To (*convert_)(From);
  std::string name_;
};

}  // namespace ptero::passes
