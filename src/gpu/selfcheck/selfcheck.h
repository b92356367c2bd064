// SPDX-License-Identifier: BSD-3-Clause
// What a user can run on their own GPU to learn whether it computes right: small dispatches with
// known answers, one check for the order of dispatches and one for each fast path.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"
#include "gpu/step.h"

namespace ptero::gpu {

enum class CheckOutcome { passed, failed, not_offered };

struct CheckResult {
  std::string_view name;
  CheckOutcome outcome = CheckOutcome::failed;
  std::string detail;  // largest error, or what is wrong or missing: a fragment of a sentence
};

struct SelfCheckReport {
  std::vector<CheckResult> checks;

  bool passed() const;
};

// One check, as data: kernels to compile, what to run with them, and how to judge the bytes.
struct CheckCase {
  struct Recorded {
    std::vector<Buffer> buffers;
    Step step;
    std::vector<ReadRange> reads;
  };
  struct Verdict {
    bool passed = false;
    std::string detail;
  };

  std::string_view name;
  std::string missing;  // not empty: why this device does not run it
  std::vector<KernelKey> keys;
  std::function<Result<Recorded>(Device&, const std::vector<Kernel>&)> record;
  std::function<Verdict(const ReadData&)> judge;
};

// The checks for a device, those it cannot run included (with the reason).
std::vector<CheckCase> self_check_cases(const Device& device);

// Runs them one after another, without blocking. A check that errs counts as failed and the rest
// still run; only the loss of the device ends it.
std::unique_ptr<Pending<SelfCheckReport>> self_check(Device device);

}  // namespace ptero::gpu
