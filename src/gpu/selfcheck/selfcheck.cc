// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/selfcheck/selfcheck.h"

#include <algorithm>
#include <utility>

namespace ptero::gpu {
namespace {

class SelfCheck : public Pending<SelfCheckReport> {
 public:
  explicit SelfCheck(Device device)
      : device_(std::move(device)), cases_(self_check_cases(device_)) {}

  WaitTarget wait_target() const override {
    if (kernels_ != nullptr) {
      return kernels_->wait_target();
    }
    return data_ != nullptr ? data_->wait_target() : WaitTarget{};
  }

 private:
  bool poll() override {
    while (next_ < cases_.size()) {
      const CheckCase& check = cases_[next_];
      if (!check.missing.empty()) {
        conclude({check.name, CheckOutcome::not_offered, check.missing});
        continue;
      }
      Result<bool> moved = advance_case(check);
      if (!moved.ok()) {
        if (moved.error().code() == ErrorCode::device_lost) {
          return finish(std::move(moved).error());
        }
        conclude({check.name, CheckOutcome::failed, moved.error().to_string()});
      } else if (!*moved) {
        return false;
      }
    }
    return finish(std::move(report_));
  }

  // True when the case was concluded, false when it waits.
  Result<bool> advance_case(const CheckCase& check) {
    if (kernels_ == nullptr && data_ == nullptr) {
      kernels_ = device_.prepare(check.keys);
    }
    if (kernels_ != nullptr) {
      if (!kernels_->advance()) {
        return false;
      }
      PTERO_ASSIGN_OR_RETURN(const std::vector<Kernel> kernels, kernels_->take());
      kernels_ = nullptr;
      PTERO_ASSIGN_OR_RETURN(recorded_, check.record(device_, kernels));
      PTERO_ASSIGN_OR_RETURN(data_, device_.submit_and_read(&recorded_.step, recorded_.reads));
    }
    if (!data_->advance()) {
      return false;
    }
    PTERO_ASSIGN_OR_RETURN(const ReadData data, data_->take());
    CheckCase::Verdict verdict = check.judge(data);
    conclude({check.name, verdict.passed ? CheckOutcome::passed : CheckOutcome::failed,
              std::move(verdict.detail)});
    return true;
  }

  void conclude(CheckResult result) {
    report_.checks.push_back(std::move(result));
    kernels_ = nullptr;
    data_ = nullptr;
    recorded_ = {};
    ++next_;
  }

  Device device_;
  std::vector<CheckCase> cases_;
  size_t next_ = 0;
  std::unique_ptr<Pending<std::vector<Kernel>>> kernels_;
  std::unique_ptr<Pending<ReadData>> data_;
  CheckCase::Recorded recorded_;
  SelfCheckReport report_;
};

}  // namespace

bool SelfCheckReport::passed() const {
  return std::none_of(checks.begin(), checks.end(), [](const CheckResult& check) {
    return check.outcome == CheckOutcome::failed;
  });
}

std::unique_ptr<Pending<SelfCheckReport>> self_check(Device device) {
  return std::make_unique<SelfCheck>(std::move(device));
}

}  // namespace ptero::gpu
