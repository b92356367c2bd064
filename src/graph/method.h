// SPDX-License-Identifier: BSD-3-Clause
// A method of a program: its delegates as loaded graphs, with the host operators between them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"
#include "graph/host_tensor.h"
#include "graph/model.h"
#include "graph/session.h"
#include "pte/data_map.h"
#include "pte/program.h"

namespace ptero::graph {

// What a method is made of, immutable and shared by sessions.
class MethodModel {
 public:
  // Reads every delegate of the method and loads it on the device. `program`, `operators` and
  // `host_operators` outlive the model. Errors: invalid_argument (no such method; the sentence
  // lists those there are), unsupported (a delegate of another backend, an operator that no
  // registry has, a control-flow instruction), and those of GraphModel::load().
  static std::unique_ptr<gpu::Pending<std::shared_ptr<const MethodModel>>> load(
      gpu::Device device, const pte::Program& program, const pte::DataMap& data,
      std::string_view method, const OperatorRegistry& operators,
      const HostOperatorRegistry& host_operators, GraphPasses passes = {},
      PlanOptions options = {});

  const pte::Program& program() const { return *program_; }
  const pte::ExecutionPlan& plan() const { return *plan_; }
  const std::vector<std::shared_ptr<const GraphModel>>& delegates() const { return delegates_; }
  const HostOperatorRegistry& host_operators() const { return *host_operators_; }

 private:
  friend class MethodLoader;
  MethodModel() = default;

  const pte::Program* program_ = nullptr;
  const pte::ExecutionPlan* plan_ = nullptr;
  const HostOperatorRegistry* host_operators_ = nullptr;
  std::vector<std::shared_ptr<const GraphModel>> delegates_;  // by index in the plan
};

// Tensors of one run that stay on the device, by position among the method's inputs and outputs;
// null, or a list that ends before, is the host. Elements have the type that the delegate computes
// with (int32 where the method says int64), and buffers hold whole words. The HostTensor at the
// same position has type and shape, and no bytes.
struct MethodBuffers {
  std::vector<const gpu::Buffer*> inputs;
  std::vector<const gpu::Buffer*> outputs;
  FollowUp* follow_up = nullptr;  // of the last delegate, if nothing of that is read back
};

// The state of one user of a method: caches and activations of its delegates. Threads and
// lifetimes as GraphSession.
class MethodSession {
 public:
  static Result<std::unique_ptr<MethodSession>> create(std::shared_ptr<const MethodModel> model,
                                                       SessionOptions options = {});

  // Runs the method. Inputs are tensors in the order of the method, each within its bounds and of
  // the method's type. The outputs come in the method's order and types. Integers (Int EValues)
  // go in and come out as int64 tensors of rank 0.
  // Code unsupported when what shall stay on the device passes through a host operator.
  Result<std::unique_ptr<gpu::Pending<std::vector<HostTensor>>>> run(std::vector<HostTensor> inputs,
                                                                     MethodBuffers buffers = {});
  // Whether output `i` may stay on the device: the last thing that makes it is a delegate.
  bool may_stay(size_t output) const;
  // Empties every cache.
  Status reset();
  // Those of all delegates, in their order.
  std::vector<const gpu::Buffer*> caches() const;

  // What the method's delegates and this session plan to take, and what the device has.
  MemoryReport memory();

  const MethodModel& model() const { return *model_; }
  // Of the last run, over all delegates.
  uint64_t last_dispatches() const { return last_dispatches_; }
  // With SessionOptions::profile: over all delegates, since the last clear_kernel_times().
  std::vector<gpu::KernelTime> kernel_times() const;
  void clear_kernel_times();
  // Operator functions called so far: none while shapes repeat.
  uint64_t operator_calls() const;

 private:
  friend class MethodRun;
  explicit MethodSession(std::shared_ptr<const MethodModel> model) : model_(std::move(model)) {}

  std::shared_ptr<const MethodModel> model_;
  std::vector<std::unique_ptr<GraphSession>> delegates_;
  uint64_t last_dispatches_ = 0;
};

}  // namespace ptero::graph
