// SPDX-License-Identifier: BSD-3-Clause
// The part of MethodSession that runs nothing.
#include <algorithm>

#include "graph/method.h"

namespace ptero::graph {

Result<std::unique_ptr<MethodSession>> MethodSession::create(
    std::shared_ptr<const MethodModel> model, SessionOptions options) {
  std::unique_ptr<MethodSession> session(new MethodSession(std::move(model)));
  for (const auto& delegate : session->model_->delegates()) {
    PTERO_ASSIGN_OR_RETURN(auto graph, GraphSession::create(delegate, options));
    session->delegates_.push_back(std::move(graph));
  }
  return session;
}

bool MethodSession::may_stay(size_t output) const {
  const pte::ExecutionPlan& plan = model_->plan();
  const uint32_t id = plan.outputs[output];
  bool by_delegate = false;
  for (const pte::Chain& chain : plan.chains) {
    for (const pte::Instruction& instruction : chain.instructions) {
      const auto touches = [&](const std::vector<uint32_t>& args) {
        return std::find(args.begin(), args.end(), id) != args.end();
      };
      if (const auto* call = std::get_if<pte::DelegateCall>(&instruction);
          call != nullptr && touches(call->args)) {
        by_delegate = true;
      } else if (const auto* kernel = std::get_if<pte::KernelCall>(&instruction);
                 kernel != nullptr && touches(kernel->args)) {
        return false;
      } else if (const auto* move = std::get_if<pte::MoveCall>(&instruction);
                 move != nullptr && (move->from == id || move->to == id)) {
        return false;
      }
    }
  }
  return by_delegate;
}

std::vector<const gpu::Buffer*> MethodSession::caches() const {
  std::vector<const gpu::Buffer*> all;
  for (const auto& delegate : delegates_) {
    const std::vector<const gpu::Buffer*> caches = delegate->caches();
    all.insert(all.end(), caches.begin(), caches.end());
  }
  return all;
}

MemoryReport MethodSession::memory() {
  MemoryReport report;
  for (const auto& delegate : delegates_) {
    report.planned = together(report.planned, delegate->planned_bytes());
  }
  if (!delegates_.empty()) {
    const MemoryReport live = report_of(delegates_.front()->model().device().stats());
    report = {report.planned, live.allocated, live.peak, live.peak_of_all};
  }
  return report;
}

std::vector<gpu::KernelTime> MethodSession::kernel_times() const {
  std::vector<gpu::KernelTime> all;
  for (const auto& delegate : delegates_) {
    all.insert(all.end(), delegate->kernel_times().begin(), delegate->kernel_times().end());
  }
  return all;
}

void MethodSession::clear_kernel_times() {
  for (const auto& delegate : delegates_) {
    delegate->clear_kernel_times();
  }
}

uint64_t MethodSession::operator_calls() const {
  uint64_t calls = 0;
  for (const auto& delegate : delegates_) {
    calls += delegate->planner().operator_calls();
  }
  return calls;
}

Status MethodSession::reset() {
  for (const auto& delegate : delegates_) {
    PTERO_RETURN_IF_ERROR(delegate->reset());
  }
  return ok_status();
}

}  // namespace ptero::graph
