// SPDX-License-Identifier: BSD-3-Clause
// Encoding and submitting of steps.
#include <algorithm>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "gpu/internal/readback.h"
#include "gpu/internal/step_impl.h"

namespace ptero::gpu {
namespace internal {

namespace {

// One more set of queries.
void add_set(DeviceState& state, Queries& queries, uint32_t passes) {
  wgpu::QuerySetDescriptor descriptor;
  descriptor.label = "times";
  descriptor.type = wgpu::QueryType::Timestamp;
  descriptor.count = passes * 2;
  queries.sets.push_back(state.device.CreateQuerySet(&descriptor));
}

class Encoder {
 public:
  Encoder(DeviceState& state, Queries* queries) : state_(state), queries_(queries) {}

  Status encode(wgpu::CommandEncoder& encoder, std::span<const Step* const> steps) {
    size_t slots = 0;
    for (const Step* step : steps) {
      PTERO_REJECT_IF(step->impl().device != nullptr && step->impl().device != &state_,
                      invalid_argument, "The step belongs to another device.");
      slots += step->impl().uniform_slots;
    }
    PTERO_RETURN_IF_ERROR(state_.reserve_uniforms_if_needed(slots));
    uniforms_.reserve(slots * kUniformSlot);
    for (const Step* step : steps) {
      for (const auto& command : step->impl().commands) {
        if (const auto* copy = std::get_if<CopyCommand>(&command)) {
          end_pass();
          encoder.CopyBufferToBuffer(copy->source, copy->source_offset, copy->target,
                                     copy->target_offset, copy->bytes);
          ++state_.stats.copies;
        } else {
          dispatch(encoder, std::get<DispatchCommand>(command), step->impl());
        }
      }
    }
    end_pass();
    if (!uniforms_.empty()) {
      state_.queue.WriteBuffer(state_.uniforms.buffer, 0, uniforms_.data(), uniforms_.size());
      state_.stats.bytes_written += uniforms_.size();
    }
    return ok_status();
  }

 private:
  void begin_pass(wgpu::CommandEncoder& encoder) {
    wgpu::PassTimestampWrites times;
    wgpu::ComputePassDescriptor descriptor;
    Queries* const queries = queries_ != nullptr ? queries_
                             : state_.pass_timer ? &state_.pass_timer->queries
                                                 : nullptr;
    if (queries != nullptr) {
      const uint32_t index = queries->count++;
      if (index / Queries::kPassesPerSet == queries->sets.size()) {
        add_set(state_, *queries, Queries::kPassesPerSet);
      }
      times.querySet = queries->sets[index / Queries::kPassesPerSet];
      times.beginningOfPassWriteIndex = index % Queries::kPassesPerSet * 2;
      times.endOfPassWriteIndex = times.beginningOfPassWriteIndex + 1;
      descriptor.timestampWrites = &times;
    }
    pass_ = encoder.BeginComputePass(&descriptor);
    pipeline_ = nullptr;
    ++state_.stats.passes;
  }

  void end_pass() {
    if (pass_ != nullptr) {
      pass_.End();
      pass_ = nullptr;
    }
  }

  void dispatch(wgpu::CommandEncoder& encoder, const DispatchCommand& command,
                const Step::Impl& step) {
    const Grid& grid = command.grid;
    if (queries_ == nullptr && (grid.x == 0 || grid.y == 0 || grid.z == 0)) {
      return;
    }
    if (pass_ == nullptr) {
      begin_pass(encoder);
    }
    const PipelineEntry& pipeline = *command.pipeline;
    if (pipeline_ != &pipeline) {
      pass_.SetPipeline(pipeline.pipeline);
      pipeline_ = &pipeline;
    }
    pass_.SetBindGroup(0, command.bindings->handle);
    const uint32_t size = pipeline.key.source->params_size;
    const std::byte* params = step.params.data() + command.params_at;
    if (pipeline.route == ParamsRoute::immediate) {
      pass_.SetImmediates(0, params, size);
    } else if (pipeline.route == ParamsRoute::uniform) {
      const uint32_t offset = static_cast<uint32_t>(uniforms_.size());
      uniforms_.insert(uniforms_.end(), params, params + size);
      uniforms_.resize(offset + kUniformSlot);
      pass_.SetBindGroup(1, state_.uniforms.group, 1, &offset);
    }
    pass_.DispatchWorkgroups(grid.x, grid.y, grid.z);
    ++state_.stats.dispatches;
    if (queries_ != nullptr) {
      end_pass();
    }
  }

  DeviceState& state_;
  Queries* queries_;  // of a profile
  wgpu::ComputePassEncoder pass_;
  const PipelineEntry* pipeline_ = nullptr;
  std::vector<std::byte> uniforms_;
};

Status submit_commands(DeviceState& state, const wgpu::CommandEncoder& encoder) {
  wgpu::CommandBuffer commands = encoder.Finish();
  if (const auto fault = state.hit(FaultPoint::submit); fault && fault != FaultKind::lose_device) {
    state.errors->report(ErrorCode::internal,
                         "the submitted commands are invalid (injected fault)");
  } else {
    state.queue.Submit(1, &commands);
  }
  ++state.stats.submits;
  return state.check();
}

// Entry i of what the queries were resolved to.
PassTime time_at(const ReadData& data, size_t i) {
  uint64_t range[2];
  std::memcpy(range, data.front().data() + i * sizeof(range), sizeof(range));
  return {range[0], std::max(range[0], range[1]), {}};
}

class Profile : public Pending<std::vector<KernelTime>> {
 public:
  Profile(std::shared_ptr<DeviceState> state, std::vector<std::string_view> kernels,
          std::unique_ptr<Pending<ReadData>> times)
      : state_(std::move(state)), kernels_(std::move(kernels)), times_(std::move(times)) {}

  WaitTarget wait_target() const override { return times_->wait_target(); }

 private:
  bool poll() override {
    if (!times_->advance()) {
      return false;
    }
    Result<ReadData> data = times_->take();
    if (!data.ok()) {
      return finish(std::move(data).error());
    }
    std::vector<KernelTime> times;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      PassTime time = time_at(*data, i);
      times.push_back({kernels_[i], time.end - time.begin});
      if (state_->pass_timer) {
        time.kernel = kernels_[i];
        state_->pass_timer->profiled.push_back(time);
      }
    }
    return finish(std::move(times));
  }

  std::shared_ptr<DeviceState> state_;
  std::vector<std::string_view> kernels_;
  std::unique_ptr<Pending<ReadData>> times_;
};

class PassTimes : public Pending<std::vector<PassTime>> {
 public:
  // `read` is null when no pass was timed.
  PassTimes(std::vector<PassTime> times, uint32_t count, std::unique_ptr<Pending<ReadData>> read)
      : times_(std::move(times)), count_(count), read_(std::move(read)) {}

  WaitTarget wait_target() const override {
    return read_ != nullptr ? read_->wait_target() : WaitTarget{};
  }

 private:
  bool poll() override {
    if (read_ != nullptr) {
      if (!read_->advance()) {
        return false;
      }
      Result<ReadData> data = read_->take();
      if (!data.ok()) {
        return finish(std::move(data).error());
      }
      for (uint32_t i = 0; i < count_; ++i) {
        times_.push_back(time_at(*data, i));
      }
    }
    return finish(std::move(times_));
  }

  std::vector<PassTime> times_;
  uint32_t count_;
  std::unique_ptr<Pending<ReadData>> read_;
};

struct SourceRange {
  wgpu::Buffer buffer;
  uint64_t offset;
  uint64_t size;
};

// Records the copies out, submits and starts mapping.
Result<std::unique_ptr<Pending<ReadData>>> submit_with_copies(
    const std::shared_ptr<DeviceState>& state, const wgpu::CommandEncoder& encoder,
    const std::vector<SourceRange>& sources) {
  std::vector<ReadPart> parts;
  uint64_t used = 0;
  for (const SourceRange& source : sources) {
    parts.push_back({used, source.size});
    used += *checked_round_up<uint64_t>(source.size, 8);  // mapped ranges start at multiples of 8
  }
  PTERO_ASSIGN_OR_RETURN(StagingPool::Staging staging, take_staging(*state, used));
  for (size_t i = 0; i < sources.size(); ++i) {
    encoder.CopyBufferToBuffer(sources[i].buffer, sources[i].offset, staging.buffer,
                               parts[i].offset, *checked_round_up<uint64_t>(sources[i].size, 4));
  }
  if (Status status = submit_commands(*state, encoder); !status.ok()) {
    state->count_release(MemoryKind::staging, staging.size);
    return std::move(status).error();
  }
  return map_staging(state, std::move(staging), std::move(parts), used);
}

Result<Queries> create_queries(DeviceState& state, uint32_t dispatches) {
  Queries queries;
  for (uint32_t made = 0; made < dispatches; made += Queries::kPassesPerSet) {
    add_set(state, queries, std::min(dispatches - made, Queries::kPassesPerSet));
  }
  PTERO_RETURN_IF_ERROR(state.check(), "while preparing to profile {} dispatches", dispatches);
  return queries;
}

// Reads back the first queries.count pairs.
Result<std::unique_ptr<Pending<ReadData>>> resolve_and_read(
    const std::shared_ptr<DeviceState>& state, const wgpu::CommandEncoder& encoder,
    const Queries& queries) {
  wgpu::BufferDescriptor descriptor;
  descriptor.label = "times";
  descriptor.size = uint64_t{queries.count} * 16;
  descriptor.usage = wgpu::BufferUsage::QueryResolve | wgpu::BufferUsage::CopySrc;
  wgpu::Buffer resolved = state->device.CreateBuffer(&descriptor);
  for (uint32_t first = 0; first < queries.count; first += Queries::kPassesPerSet) {
    encoder.ResolveQuerySet(queries.sets[first / Queries::kPassesPerSet], 0,
                            std::min(queries.count - first, Queries::kPassesPerSet) * 2, resolved,
                            uint64_t{first} * 16);
  }
  return submit_with_copies(state, encoder, {{std::move(resolved), 0, descriptor.size}});
}

}  // namespace

Status DeviceState::reserve_uniforms_if_needed(size_t slots) {
  return slots == 0 ? ok_status() : reserve_uniforms(slots * kUniformSlot);
}

}  // namespace internal

Status Device::submit(const Step& step) {
  const Step* steps[] = {&step};
  return submit(std::span<const Step* const>(steps));
}

Status Device::submit(std::span<const Step* const> steps) {
  PTERO_RETURN_IF_ERROR(state_->check(), "while submitting a step");
  wgpu::CommandEncoder encoder = state_->device.CreateCommandEncoder();
  PTERO_RETURN_IF_ERROR(internal::Encoder(*state_, nullptr).encode(encoder, steps));
  return internal::submit_commands(*state_, encoder);
}

Result<std::unique_ptr<Pending<ReadData>>> Device::submit_and_read(
    const Step* step, std::span<const ReadRange> ranges) {
  return submit_and_read(std::span<const Step* const>(&step, step != nullptr ? 1 : 0), ranges);
}

Result<std::unique_ptr<Pending<ReadData>>> Device::submit_and_read(
    std::span<const Step* const> steps, std::span<const ReadRange> ranges) {
  PTERO_RETURN_IF_ERROR(state_->check(), "while submitting a step");
  PTERO_REJECT_IF(ranges.empty(), invalid_argument, "There is nothing to read back.");
  std::vector<internal::SourceRange> sources;
  for (const ReadRange& range : ranges) {
    PTERO_REJECT_IF(range.buffer == nullptr || !range.buffer->valid(), invalid_argument,
                    "The buffer to read back from is empty.");
    PTERO_REJECT_IF(range.buffer->state()->device != state_, invalid_argument,
                    "Buffer ({}) to read back from belongs to another device.",
                    range.buffer->label());
    const uint64_t allocated = range.buffer->state()->allocated;
    PTERO_REJECT_IF(range.offset % 4 != 0 || range.size == 0 || range.offset > allocated ||
                        range.size > allocated - range.offset,
                    invalid_argument,
                    "A readback of {} bytes at {} does not fit buffer ({}, {} bytes).", range.size,
                    range.offset, range.buffer->label(), range.buffer->size());
    sources.push_back({range.buffer->state()->handle, range.offset, range.size});
  }
  wgpu::CommandEncoder encoder = state_->device.CreateCommandEncoder();
  PTERO_RETURN_IF_ERROR(internal::Encoder(*state_, nullptr).encode(encoder, steps));
  return internal::submit_with_copies(state_, encoder, sources);
}

Result<std::unique_ptr<Pending<ReadData>>> Device::read(const Buffer& buffer, uint64_t offset,
                                                        uint64_t size) {
  const ReadRange range{&buffer, offset, size};
  return submit_and_read(nullptr, std::span(&range, 1));
}

Result<std::unique_ptr<Pending<std::vector<KernelTime>>>> Device::submit_profiled(
    const Step& step) {
  PTERO_RETURN_IF_ERROR(state_->check(), "while submitting a step to profile");
  PTERO_REJECT_IF(!features().contains(Feature::timestamps), unsupported,
                  "Profiling needs timestamps, which this device does not have switched on.");
  std::vector<std::string_view> kernels;
  for (const auto& command : step.impl().commands) {
    if (const auto* dispatch = std::get_if<internal::DispatchCommand>(&command)) {
      kernels.push_back(dispatch->pipeline->key.source->name);
    }
  }
  PTERO_REJECT_IF(kernels.empty(), invalid_argument, "A step without dispatches has no profile.");
  PTERO_ASSIGN_OR_RETURN(internal::Queries queries,
                         internal::create_queries(*state_, static_cast<uint32_t>(kernels.size())));
  wgpu::CommandEncoder encoder = state_->device.CreateCommandEncoder();
  const Step* steps[] = {&step};
  PTERO_RETURN_IF_ERROR(internal::Encoder(*state_, &queries).encode(encoder, steps));
  PTERO_ASSIGN_OR_RETURN(auto times, internal::resolve_and_read(state_, encoder, queries));
  return std::unique_ptr<Pending<std::vector<KernelTime>>>(
      std::make_unique<internal::Profile>(state_, std::move(kernels), std::move(times)));
}

Status start_pass_times(Device& device) {
  PTERO_REJECT_IF(!device.features().contains(Feature::timestamps), unsupported,
                  "The GPU's time needs timestamps, which this device does not have switched on.");
  device.state().pass_timer = std::make_unique<internal::PassTimer>();
  return ok_status();
}

Result<std::unique_ptr<Pending<std::vector<PassTime>>>> take_pass_times(Device& device) {
  internal::DeviceState& state = device.state();
  PTERO_RETURN_IF_ERROR(state.check(), "while reading the times of passes");
  PTERO_REJECT_IF(state.pass_timer == nullptr, invalid_argument, "No pass is being timed.");
  const std::unique_ptr<internal::PassTimer> timer = std::move(state.pass_timer);
  std::unique_ptr<Pending<ReadData>> read;
  if (timer->queries.count > 0) {
    const wgpu::CommandEncoder encoder = state.device.CreateCommandEncoder();
    PTERO_ASSIGN_OR_RETURN(
        read, internal::resolve_and_read(state.shared_from_this(), encoder, timer->queries));
  }
  return std::unique_ptr<Pending<std::vector<PassTime>>>(std::make_unique<internal::PassTimes>(
      std::move(timer->profiled), timer->queries.count, std::move(read)));
}

Result<std::unique_ptr<Pending<void>>> Device::finished() {
  PTERO_RETURN_IF_ERROR(state_->check(), "while waiting for the GPU");
  return internal::wait_for_queue(state_);
}

}  // namespace ptero::gpu
