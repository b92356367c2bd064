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
      const HostOperatorRegistry& host_operators, GraphPasses passes = {});

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

// The state of one user of a method: caches and activations of its delegates. Threads and
// lifetimes as GraphSession.
class MethodSession {
 public:
  static Result<std::unique_ptr<MethodSession>> create(std::shared_ptr<const MethodModel> model,
                                                       SessionOptions options = {});

  // Runs the method. Inputs are tensors in the order of the method, each within its bounds and of
  // the method's type. The outputs come in the method's order and types. Integers (Int EValues)
  // go in and come out as int64 tensors of rank 0.
  Result<std::unique_ptr<gpu::Pending<std::vector<HostTensor>>>> run(
      std::vector<HostTensor> inputs);

  const MethodModel& model() const { return *model_; }
  // Of the last run, over all delegates.
  uint64_t last_dispatches() const { return last_dispatches_; }

 private:
  friend class MethodRun;
  explicit MethodSession(std::shared_ptr<const MethodModel> model) : model_(std::move(model)) {}

  std::shared_ptr<const MethodModel> model_;
  std::vector<std::unique_ptr<GraphSession>> delegates_;
  uint64_t last_dispatches_ = 0;
};

}  // namespace ptero::graph
