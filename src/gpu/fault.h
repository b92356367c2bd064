// SPDX-License-Identifier: BSD-3-Clause
// Fault injection: makes the n-th buffer, pipeline, map or submit of a device fail, hang or take
// the device down, through the same code that handles the real thing. For tests; a device made
// without a plan pays one pointer comparison at each point.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace ptero::gpu {

enum class FaultPoint : uint8_t { buffer, pipeline, map, submit };

enum class FaultKind : uint8_t {
  fail,         // buffer: out of memory; pipeline: does not compile; map, submit: an error
  hang,         // the completion of this pipeline or map never arrives; other points: fail
  lose_device,  // the device is lost at this point
};

class FaultPlan {
 public:
  // The `nth` (from 1) event at `point`, counted from now, meets `kind`.
  void add(FaultPoint point, uint64_t nth, FaultKind kind) {
    faults_.push_back({point, counts_[static_cast<size_t>(point)] + nth, kind});
  }

  // Called by the device at each event; what to do to it, if anything.
  std::optional<FaultKind> hit(FaultPoint point) {
    const uint64_t count = ++counts_[static_cast<size_t>(point)];
    for (const Fault& fault : faults_) {
      if (fault.point == point && fault.at == count) {
        return fault.kind;
      }
    }
    return std::nullopt;
  }

  // Events seen so far, for tests that walk through "fail the n-th" for every n.
  uint64_t count(FaultPoint point) const { return counts_[static_cast<size_t>(point)]; }

 private:
  struct Fault {
    FaultPoint point;
    uint64_t at;
    FaultKind kind;
  };
  uint64_t counts_[4] = {};
  std::vector<Fault> faults_;
};

}  // namespace ptero::gpu
