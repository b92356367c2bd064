// SPDX-License-Identifier: BSD-3-Clause
// GraphSession::run: what one run does between its call and its outputs.
#include <cstring>
#include <utility>

#include "graph/session.h"

namespace ptero::graph {

// One run: for each segment compile (when the plan is new), submit, and read back what is needed.
class SessionRun : public gpu::Pending<std::vector<RunOutput>> {
 public:
  SessionRun(GraphSession& session, PlannedRun run, std::span<const RunInput> inputs,
             std::vector<const gpu::Buffer*> targets, FollowUp* follow_up)
      : session_(session),
        run_(std::move(run)),
        targets_(std::move(targets)),
        follow_up_(follow_up) {
    for (const RunInput& input : inputs) {
      kept_bytes_.emplace_back(input.bytes.begin(), input.bytes.end());
      inputs_.push_back({input.live, kept_bytes_.back(), input.buffer});
      inputs_.back().live.bytes = kept_bytes_.back();
      live_.push_back(inputs_.back().live);
    }
  }

  gpu::WaitTarget wait_target() const override {
    if (kernels_ != nullptr) {
      return kernels_->wait_target();
    }
    if (profile_ != nullptr) {
      return profile_->wait_target();
    }
    return data_ != nullptr ? data_->wait_target() : gpu::WaitTarget{};
  }

 private:
  bool poll() override {
    Result<bool> done = advance_run();
    if (!done.ok()) {
      return finish(std::move(done).error());
    }
    return *done && finish(std::move(outputs_));
  }

  Result<bool> advance_run() {
    while (true) {
      if (data_ == nullptr) {
        PTERO_ASSIGN_OR_RETURN(GraphSession::Ready* const ready, find_ready());
        if (ready == nullptr) {
          return false;
        }
        if (profile_ == nullptr) {
          PTERO_RETURN_IF_ERROR(start(*ready));
        }
        PTERO_ASSIGN_OR_RETURN(const bool submitted, submit(*ready));
        if (!submitted) {
          return false;
        }
        if (data_ == nullptr) {
          return true;  // nothing to read back
        }
      }
      if (!data_->advance()) {
        return false;
      }
      PTERO_ASSIGN_OR_RETURN(gpu::ReadData data, data_->take());
      data_ = nullptr;
      PTERO_RETURN_IF_ERROR(take(std::move(data)));
      if (!run_.plan->awaits) {
        return true;
      }
      PTERO_ASSIGN_OR_RETURN(run_, session_.planner_.resume(run_, live_));
    }
  }

  Result<GraphSession::Ready*> find_ready() {
    if (const auto known = session_.ready_.find(run_.plan.get()); known != session_.ready_.end()) {
      return &known->second;
    }
    if (kernels_ == nullptr) {
      std::vector<gpu::KernelKey> keys;
      for (const auto& command : run_.plan->commands) {
        if (const auto* dispatch = std::get_if<PlannedDispatch>(&command)) {
          keys.push_back(dispatch->kernel);
        }
      }
      kernels_ = session_.device_.prepare(std::move(keys));
    }
    if (!kernels_->advance()) {
      return nullptr;
    }
    PTERO_ASSIGN_OR_RETURN(const std::vector<gpu::Kernel> kernels, kernels_->take());
    kernels_ = nullptr;
    return session_.make_ready(run_.plan, kernels);
  }

  // Uploads, and says what belongs around the segment.
  Status start(GraphSession::Ready& ready) {
    const Plan& plan = *run_.plan;
    before_.clear();
    after_.clear();
    ranges_.clear();
    if (plan.splits == 0) {
      PTERO_RETURN_IF_ERROR(session_.poison());
      PTERO_RETURN_IF_ERROR(session_.write_inputs(inputs_, before_));
      session_.last_dispatches_ = 0;
    }
    PTERO_RETURN_IF_ERROR(session_.write_slots(run_));
    PTERO_RETURN_IF_ERROR(session_.follow_scalars(run_, ready));
    session_.last_dispatches_ += plan.dispatches();
    session_.last_splits_ = plan.splits;

    if (!plan.awaits) {
      PTERO_RETURN_IF_ERROR(collect_outputs());
    }
    if (plan.awaits || plan.reads_scalars) {
      const uint32_t slots = *session_.model_->memory().slot_storage;
      ranges_.push_back({&session_.storage(slots), 0, session_.storage(slots).size()});
    }
    return ok_status();
  }

  // All in one submission, unless it is profiled: then false while the times are awaited.
  Result<bool> submit(const GraphSession::Ready& ready) {
    std::vector<const gpu::Step*> steps = {&before_, &ready.step, &after_};
    if (session_.options_.profile && run_.plan->dispatches() > 0) {
      if (profile_ == nullptr) {
        PTERO_RETURN_IF_ERROR(session_.device_.submit(before_));
        PTERO_ASSIGN_OR_RETURN(profile_, session_.device_.submit_profiled(ready.step));
      }
      if (!profile_->advance()) {
        return false;
      }
      PTERO_ASSIGN_OR_RETURN(const std::vector<gpu::KernelTime> times, profile_->take());
      profile_ = nullptr;
      session_.kernel_times_.insert(session_.kernel_times_.end(), times.begin(), times.end());
      steps = {&after_};
    }
    if (ranges_.empty() && follow_up_ != nullptr) {
      steps.push_back(follow_up_->step);
      PTERO_ASSIGN_OR_RETURN(follow_up_->data,
                             session_.device_.submit_and_read(steps, follow_up_->reads));
    } else if (ranges_.empty()) {
      PTERO_RETURN_IF_ERROR(session_.device_.submit(steps));
    } else {
      PTERO_ASSIGN_OR_RETURN(data_, session_.device_.submit_and_read(steps, ranges_));
    }
    return true;
  }

  // The outputs, the ranges to read back for them, and the copies of those that stay.
  Status collect_outputs() {
    const pte::Graph& graph = session_.model_->graph();
    PTERO_RETURN_IF_ERROR(session_.check_buffers({}, targets_, *run_.plan));
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const uint32_t id = graph.outputs[i];
      RunOutput output{run_.plan->output_shapes[i], {}, run_.scalars[id]};
      if (const auto* tensor = std::get_if<pte::GraphTensor>(&graph.values[id])) {
        const uint64_t bytes = output.shape.numel() * *pte::element_size(tensor->dtype);
        const gpu::Buffer& source = session_.storage(*session_.model_->memory().storage_of[id]);
        const gpu::Buffer* target = i < targets_.size() ? targets_[i] : nullptr;
        if (bytes > 0 && target != nullptr) {
          PTERO_RETURN_IF_ERROR(after_.copy(source, 0, *target, 0, whole_words(bytes)),
                                "in output {}", i);
        } else if (bytes > 0) {
          ranges_.push_back({&source, 0, bytes});
          read_outputs_.push_back(i);
        }
      }
      outputs_.push_back(std::move(output));
    }
    return ok_status();
  }

  Status take(gpu::ReadData data) {
    for (size_t i = 0; i < read_outputs_.size(); ++i) {
      outputs_[read_outputs_[i]].bytes = std::move(data[i]);
    }
    if (!run_.plan->awaits && !run_.plan->reads_scalars) {
      return ok_status();
    }
    std::vector<int32_t> slots(data.back().size() / sizeof(int32_t));
    std::memcpy(slots.data(), data.back().data(), slots.size() * sizeof(int32_t));
    PTERO_RETURN_IF_ERROR(session_.planner_.take_slots(run_, slots));
    const pte::Graph& graph = session_.model_->graph();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      outputs_[i].scalar = run_.scalars[graph.outputs[i]];
    }
    return ok_status();
  }

  GraphSession& session_;
  PlannedRun run_;
  std::deque<std::vector<std::byte>> kept_bytes_;
  std::vector<RunInput> inputs_;
  std::vector<LiveInput> live_;  // the same as the planner takes them
  std::vector<const gpu::Buffer*> targets_;
  FollowUp* follow_up_;
  std::unique_ptr<gpu::Pending<std::vector<gpu::Kernel>>> kernels_;
  gpu::Step before_;  // inputs that are on the device
  gpu::Step after_;   // outputs that stay there
  std::vector<gpu::ReadRange> ranges_;
  std::unique_ptr<gpu::Pending<std::vector<gpu::KernelTime>>> profile_;
  std::unique_ptr<gpu::Pending<gpu::ReadData>> data_;
  std::vector<size_t> read_outputs_;  // entry i of the data belongs to this output
  std::vector<RunOutput> outputs_;
};

Result<std::unique_ptr<gpu::Pending<std::vector<RunOutput>>>> GraphSession::run(
    std::span<const RunInput> inputs, std::vector<const gpu::Buffer*> outputs,
    FollowUp* follow_up) {
  const pte::Graph& graph = model_->graph();
  PTERO_REJECT_IF(!outputs.empty() && outputs.size() != graph.outputs.size(), invalid_argument,
                  "Number of output buffers ({}) differs from what the graph produces ({}).",
                  outputs.size(), graph.outputs.size());
  std::vector<LiveInput> live;
  for (const RunInput& input : inputs) {
    live.push_back(input.live);
    live.back().bytes = input.buffer == nullptr ? input.bytes : std::span<const std::byte>();
  }
  PTERO_RETURN_IF_ERROR(planner_.check_inputs(live));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (const auto* tensor = std::get_if<pte::GraphTensor>(&graph.values[graph.inputs[i]]);
        tensor != nullptr && inputs[i].buffer == nullptr) {
      const uint64_t bytes = live[i].shape.numel() * *pte::element_size(tensor->dtype);
      PTERO_REJECT_IF(inputs[i].bytes.size() != bytes, invalid_argument,
                      "Size ({} bytes) of input {} differs from what its shape {} takes ({}).",
                      inputs[i].bytes.size(), i, to_string(live[i].shape), bytes);
    }
  }
  PTERO_RETURN_IF_ERROR(check_buffers(inputs, {}, {}));
  PTERO_ASSIGN_OR_RETURN(PlannedRun run, planner_.plan(live));
  return std::unique_ptr<gpu::Pending<std::vector<RunOutput>>>(
      std::make_unique<SessionRun>(*this, std::move(run), inputs, std::move(outputs), follow_up));
}

}  // namespace ptero::graph
