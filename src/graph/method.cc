// SPDX-License-Identifier: BSD-3-Clause
#include "graph/method.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "pte/delegate_reader.h"
#include "pte/graph_reader.h"

namespace ptero::graph {
namespace {

std::string operator_name(const pte::Operator& op) {
  return op.overload.empty() ? op.name : fmt::format("{}.{}", op.name, op.overload);
}

Status check_instructions(const pte::ExecutionPlan& plan,
                          const HostOperatorRegistry& host_operators) {
  for (const pte::Chain& chain : plan.chains) {
    for (const pte::Instruction& instruction : chain.instructions) {
      if (const auto* call = std::get_if<pte::KernelCall>(&instruction)) {
        const std::string name = operator_name(plan.operators[call->op]);
        PTERO_REJECT_IF(!host_operators.contains(name), unsupported,
                        "Operator {} of method ({}) was left to the host by the exporter, and this "
                        "build has no such host operator.",
                        name, plan.name);
      }
      PTERO_REJECT_IF(std::holds_alternative<pte::JumpFalseCall>(instruction), unsupported,
                      "Method ({}) has a conditional jump, which this build does not run.",
                      plan.name);
    }
  }
  return ok_status();
}

}  // namespace

class MethodLoader : public gpu::Pending<std::shared_ptr<const MethodModel>> {
 public:
  MethodLoader(gpu::Device device, const pte::Program& program, const pte::DataMap& data,
               std::string_view method, const OperatorRegistry& operators,
               const HostOperatorRegistry& host_operators, GraphPasses passes, PlanOptions options)
      : device_(std::move(device)),
        data_(data),
        method_(method),
        operators_(operators),
        passes_(passes),
        options_(std::move(options)),
        model_(new MethodModel()) {
    model_->program_ = &program;
    model_->host_operators_ = &host_operators;
  }

  gpu::WaitTarget wait_target() const override {
    return graph_ != nullptr ? graph_->wait_target() : gpu::WaitTarget{};
  }

 private:
  bool poll() override {
    Result<bool> done = advance_load();
    if (!done.ok()) {
      return finish(std::move(done).error());
    }
    return *done && finish(std::shared_ptr<const MethodModel>(std::move(model_)));
  }

  Result<bool> advance_load() {
    if (model_->plan_ == nullptr) {
      PTERO_RETURN_IF_ERROR(find_method());
    }
    const pte::ExecutionPlan& plan = *model_->plan_;
    while (model_->delegates_.size() < plan.delegates.size()) {
      const size_t index = model_->delegates_.size();
      if (graph_ == nullptr) {
        PTERO_ASSIGN_OR_RETURN(pte::Graph graph, read(plan.delegates[index]),
                               "while reading delegate {} of method {}", index, plan.name);
        graph_ = GraphModel::load(device_, std::move(graph), operators_, passes_, options_);
      }
      if (!graph_->advance()) {
        return false;
      }
      PTERO_ASSIGN_OR_RETURN(auto loaded, graph_->take(), "while loading delegate {} of method {}",
                             index, plan.name);
      model_->delegates_.push_back(std::move(loaded));
      graph_ = nullptr;
    }
    return true;
  }

  Status find_method() {
    const pte::Program& program = *model_->program_;
    model_->plan_ = pte::find_plan(program, method_);
    if (model_->plan_ == nullptr) {
      std::vector<std::string_view> names;
      for (const pte::ExecutionPlan& plan : program.plans) {
        names.push_back(plan.name);
      }
      return make_error(ErrorCode::invalid_argument, "The program has no method ({}); it has {}.",
                        method_, fmt::join(names, ", "));
    }
    return check_instructions(*model_->plan_, *model_->host_operators_);
  }

  Result<pte::Graph> read(const pte::BackendDelegate& delegate) const {
    PTERO_REJECT_IF(delegate.id != pte::kVulkanBackendId, unsupported,
                    "The delegate is for backend ({}); Ptero runs those for {}. Export the model "
                    "with VulkanPartitioner.",
                    delegate.id, pte::kVulkanBackendId);
    PTERO_ASSIGN_OR_RETURN(const pte::Delegate parts,
                           pte::read_delegate(pte::delegate_bytes(*model_->program_, delegate)));
    return pte::read_graph(parts, data_);
  }

  gpu::Device device_;
  const pte::DataMap& data_;
  std::string method_;
  const OperatorRegistry& operators_;
  GraphPasses passes_;
  PlanOptions options_;
  std::unique_ptr<MethodModel> model_;
  std::unique_ptr<gpu::Pending<std::shared_ptr<const GraphModel>>> graph_;
};

std::unique_ptr<gpu::Pending<std::shared_ptr<const MethodModel>>> MethodModel::load(
    gpu::Device device, const pte::Program& program, const pte::DataMap& data,
    std::string_view method, const OperatorRegistry& operators,
    const HostOperatorRegistry& host_operators, GraphPasses passes, PlanOptions options) {
  return std::make_unique<MethodLoader>(std::move(device), program, data, method, operators,
                                        host_operators, passes, std::move(options));
}

// One run: the instructions in order. Only a delegate call waits.
class MethodRun : public gpu::Pending<std::vector<HostTensor>> {
 public:
  MethodRun(MethodSession& session, std::vector<HostTensor> tensors, MethodBuffers buffers)
      : session_(session), tensors_(std::move(tensors)), buffers_(std::move(buffers)) {
    in_buffer_.resize(tensors_.size());
    for (size_t i = 0; i < buffers_.inputs.size(); ++i) {
      in_buffer_[plan().inputs[i]] = buffers_.inputs[i];
    }
  }

  gpu::WaitTarget wait_target() const override {
    return running_ != nullptr ? running_->wait_target() : gpu::WaitTarget{};
  }

 private:
  bool poll() override {
    Result<bool> done = advance_run();
    if (!done.ok()) {
      return finish(std::move(done).error());
    }
    if (!*done) {
      return false;
    }
    std::vector<HostTensor> outputs;
    for (const uint32_t id : plan().outputs) {
      outputs.push_back(std::move(tensors_[id]));
    }
    return finish(std::move(outputs));
  }

  const pte::ExecutionPlan& plan() const { return session_.model_->plan(); }

  Result<bool> advance_run() {
    for (; chain_ < plan().chains.size(); ++chain_, next_ = 0) {
      const std::vector<pte::Instruction>& instructions = plan().chains[chain_].instructions;
      for (; next_ < instructions.size(); ++next_) {
        PTERO_ASSIGN_OR_RETURN(const bool done, execute(instructions[next_]),
                               "in instruction {} of method {}", next_, plan().name);
        if (!done) {
          return false;
        }
      }
    }
    return true;
  }

  Result<bool> execute(const pte::Instruction& instruction) {
    if (const auto* call = std::get_if<pte::DelegateCall>(&instruction)) {
      return call_delegate(*call);
    }
    if (const auto* call = std::get_if<pte::KernelCall>(&instruction)) {
      const std::string name = operator_name(plan().operators[call->op]);
      for (const uint32_t arg : call->args) {
        PTERO_REJECT_IF(in_buffer_[arg] != nullptr, unsupported,
                        "Host operator {} takes a tensor that is on the device.", name);
      }
      HostCall host(plan(), call->args, tensors_);
      PTERO_RETURN_IF_ERROR(session_.model_->host_operators().at(name)(host), "in host operator {}",
                            name);
    } else if (const auto* move = std::get_if<pte::MoveCall>(&instruction)) {
      tensors_[move->to] = tensors_[move->from];
    }
    return true;  // FreeCall: memory goes with the run
  }

  Result<bool> call_delegate(const pte::DelegateCall& call) {
    GraphSession& session = *session_.delegates_[call.delegate];
    const pte::Graph& graph = session.model().graph();
    if (running_ == nullptr) {
      PTERO_REJECT_IF(call.args.size() != graph.inputs.size() + graph.outputs.size(),
                      invalid_program,
                      "Number of arguments ({}) differs from the delegate's inputs and outputs "
                      "({} and {}).",
                      call.args.size(), graph.inputs.size(), graph.outputs.size());
      PTERO_RETURN_IF_ERROR(start(call, session));
    }
    if (!running_->advance()) {
      return false;
    }
    PTERO_ASSIGN_OR_RETURN(std::vector<RunOutput> outputs, running_->take());
    running_ = nullptr;
    session_.last_dispatches_ += session.last_dispatches();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const uint32_t id = call.args[graph.inputs.size() + i];
      PTERO_ASSIGN_OR_RETURN(tensors_[id], output_of(graph, i, std::move(outputs[i]), id),
                             "in output {} of a delegate", i);
    }
    return true;
  }

  // What a delegate gave, as value `id` of the method has it.
  Result<HostTensor> output_of(const pte::Graph& graph, size_t i, RunOutput output,
                               uint32_t id) const {
    const pte::Value& stated = plan().values[id];
    HostTensor result;
    if (const auto* tensor = std::get_if<pte::GraphTensor>(&graph.values[graph.outputs[i]])) {
      result = {host_type(tensor->dtype), output.shape, std::move(output.bytes)};
      if (result.bytes.empty() && result.shape.numel() > 0) {
        return result;  // it stays on the device
      }
    } else {
      PTERO_REJECT_IF(!output.scalar, internal, "A SymInt comes without a value.");
      result = make_integer(*output.scalar);
    }
    if (const auto* tensor = std::get_if<pte::Tensor>(&stated)) {
      return convert(result, tensor->scalar_type);
    }
    PTERO_REJECT_IF(!std::holds_alternative<int64_t>(stated), unsupported,
                    "It is neither a tensor nor an integer.");
    PTERO_ASSIGN_OR_RETURN(const int64_t integer, integer_of(result));
    return make_integer(integer);
  }

  Status start(const pte::DelegateCall& call, GraphSession& session) {
    const pte::Graph& graph = session.model().graph();
    std::vector<HostTensor> converted;
    converted.reserve(graph.inputs.size());
    std::vector<RunInput> inputs;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const uint32_t id = call.args[i];
      const pte::Value& stated = plan().values[id];
      PTERO_REJECT_IF(
          !std::holds_alternative<pte::Tensor>(stated) && !std::holds_alternative<int64_t>(stated),
          invalid_program, "Input {} of a delegate is neither a tensor nor an integer.", i);
      RunInput input;
      if (in_buffer_[id] != nullptr) {
        input.live.shape = tensors_[id].shape;
        input.buffer = in_buffer_[id];
      } else if (const auto* tensor =
                     std::get_if<pte::GraphTensor>(&graph.values[graph.inputs[i]])) {
        PTERO_ASSIGN_OR_RETURN(HostTensor value, convert(tensors_[id], host_type(tensor->dtype)),
                               "in input {} of a delegate", i);
        converted.push_back(std::move(value));
        input.live.shape = converted.back().shape;
        input.bytes = converted.back().bytes;
      } else {
        PTERO_ASSIGN_OR_RETURN(input.live.scalar, integer_of(tensors_[id]),
                               "in input {} of a delegate", i);
      }
      inputs.push_back(input);
    }
    PTERO_ASSIGN_OR_RETURN(running_, session.run(inputs, targets_of(call, graph),
                                                 is_last(call) ? buffers_.follow_up : nullptr));
    return ok_status();
  }

  bool is_last(const pte::DelegateCall& call) const {
    const pte::DelegateCall* last = nullptr;
    for (const pte::Chain& chain : plan().chains) {
      for (const pte::Instruction& instruction : chain.instructions) {
        const auto* delegate = std::get_if<pte::DelegateCall>(&instruction);
        last = delegate != nullptr ? delegate : last;
      }
    }
    return last == &call;
  }

  // The buffers of the caller that take outputs of this call; none when all are read back.
  std::vector<const gpu::Buffer*> targets_of(const pte::DelegateCall& call,
                                             const pte::Graph& graph) const {
    std::vector<const gpu::Buffer*> targets(graph.outputs.size());
    bool any = false;
    for (size_t i = 0; i < targets.size(); ++i) {
      for (size_t output = 0; output < buffers_.outputs.size(); ++output) {
        if (buffers_.outputs[output] != nullptr &&
            plan().outputs[output] == call.args[graph.inputs.size() + i]) {
          targets[i] = buffers_.outputs[output];
          any = true;
        }
      }
    }
    return any ? targets : std::vector<const gpu::Buffer*>();
  }

  MethodSession& session_;
  std::vector<HostTensor> tensors_;  // by value id
  MethodBuffers buffers_;
  std::vector<const gpu::Buffer*> in_buffer_;  // inputs on the device, by value id
  size_t chain_ = 0;
  size_t next_ = 0;
  std::unique_ptr<gpu::Pending<std::vector<RunOutput>>> running_;
};

Result<std::unique_ptr<gpu::Pending<std::vector<HostTensor>>>> MethodSession::run(
    std::vector<HostTensor> inputs, MethodBuffers buffers) {
  const pte::ExecutionPlan& plan = model_->plan();
  PTERO_REJECT_IF(
      buffers.inputs.size() > plan.inputs.size() || buffers.outputs.size() > plan.outputs.size(),
      invalid_argument, "Number of buffers ({} and {}) exceeds what method ({}) takes and gives.",
      buffers.inputs.size(), buffers.outputs.size(), plan.name);
  for (size_t i = 0; i < buffers.outputs.size(); ++i) {
    PTERO_REJECT_IF(buffers.outputs[i] != nullptr && !may_stay(i), unsupported,
                    "Output {} of method ({}) is made on the host.", i, plan.name);
  }
  PTERO_REJECT_IF(inputs.size() != plan.inputs.size(), invalid_argument,
                  "Number of inputs ({}) differs from what method ({}) takes ({}).", inputs.size(),
                  plan.name, plan.inputs.size());
  std::vector<HostTensor> tensors(plan.values.size());
  for (size_t i = 0; i < plan.values.size(); ++i) {
    if (const auto* integer = std::get_if<int64_t>(&plan.values[i])) {
      tensors[i] = make_integer(*integer);
    }
    const auto* tensor = std::get_if<pte::Tensor>(&plan.values[i]);
    if (tensor == nullptr || tensor->data_buffer == 0 || tensor->allocation) {
      continue;
    }
    PTERO_ASSIGN_OR_RETURN(const ByteRange bytes, pte::constant_bytes(model_->program(), *tensor));
    HostTensor& constant = tensors[i];
    constant.type = tensor->scalar_type;
    for (const int32_t size : tensor->sizes) {
      PTERO_REJECT_IF(constant.shape.rank() == kMaxRank, unsupported,
                      "Rank of constant {} exceeds the limit ({}).", i, kMaxRank);
      constant.shape.append(static_cast<uint32_t>(size));
    }
    constant.bytes.resize(bytes.size());
    PTERO_RETURN_IF_ERROR(bytes.read(0, constant.bytes), "while reading constant {}", i);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const pte::Value& stated = plan.values[plan.inputs[i]];
    const auto* tensor = std::get_if<pte::Tensor>(&stated);
    const bool is_integer = std::holds_alternative<int64_t>(stated);
    PTERO_REJECT_IF(tensor == nullptr && !is_integer, unsupported,
                    "Input {} of method ({}) is neither a tensor nor an integer.", i, plan.name);
    const pte::ScalarType type = is_integer ? pte::ScalarType::int64 : tensor->scalar_type;
    PTERO_REJECT_IF(inputs[i].type != type, invalid_argument,
                    "Element type ({}) of input {} differs from what method ({}) takes ({}).",
                    pte::name_of(inputs[i].type), i, plan.name, pte::name_of(type));
    PTERO_REJECT_IF(is_integer && inputs[i].shape.numel() != 1, invalid_argument,
                    "Input {} of method ({}) is an integer, and {} is not one element.", i,
                    plan.name, to_string(inputs[i].shape));
    tensors[plan.inputs[i]] = std::move(inputs[i]);
  }
  last_dispatches_ = 0;
  return std::unique_ptr<gpu::Pending<std::vector<HostTensor>>>(
      std::make_unique<MethodRun>(*this, std::move(tensors), std::move(buffers)));
}

}  // namespace ptero::graph
