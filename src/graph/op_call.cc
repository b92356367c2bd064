// SPDX-License-Identifier: BSD-3-Clause
#include "graph/op_call.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace ptero::graph {
namespace {

std::string_view kind_name(const pte::GraphValue& value) {
  constexpr std::string_view kNames[] = {"Null",      "Int",     "Double",     "Bool",
                                         "Tensor",    "IntList", "DoubleList", "BoolList",
                                         "ValueList", "String",  "SymInt"};
  static_assert(std::size(kNames) == std::variant_size_v<pte::GraphValue>);
  return kNames[value.index()];
}

}  // namespace

uint64_t TensorRef::bytes() const {
  return numel() * pte::element_size(dtype).value_or(0);
}

bool TensorRef::is_float() const {
  return dtype == pte::GraphDtype::float32 || dtype == pte::GraphDtype::float16;
}

OpCall::OpCall(const pte::Graph& graph, size_t index, const DeviceFacts& device,
               const MemoryPlan& memory, std::span<const std::span<const std::byte>> host_inputs,
               LiveValues& live, Plan& plan, ScratchPool& pool)
    : graph_(graph),
      call_(graph.chain[index]),
      index_(index),
      device_(device),
      memory_(memory),
      host_inputs_(host_inputs),
      live_(live),
      plan_(plan),
      pool_(pool) {}

Error OpCall::wrong_kind(size_t arg, std::string_view wanted) const {
  if (arg >= arg_count()) {
    return make_error(ErrorCode::invalid_program, "Argument {} is missing; there are {}.", arg,
                      arg_count());
  }
  return make_error(ErrorCode::invalid_program, "Argument {} (a {}) is not {}.", arg,
                    kind_name(value(arg)), wanted);
}

Result<TensorRef> OpCall::make_ref(uint32_t id) const {
  const auto& tensor = std::get<pte::GraphTensor>(graph_.values[id]);
  return TensorRef{id, tensor.dtype, live_.shapes[id], tensor.constant_id.has_value()};
}

bool OpCall::is_null(size_t arg) const {
  return arg < arg_count() && std::holds_alternative<pte::Null>(value(arg));
}

Result<TensorRef> OpCall::tensor(size_t arg) const {
  if (arg >= arg_count() || !std::holds_alternative<pte::GraphTensor>(value(arg))) {
    return wrong_kind(arg, "a Tensor");
  }
  return make_ref(call_.args[arg]);
}

Result<std::optional<TensorRef>> OpCall::optional_tensor(size_t arg) const {
  if (is_null(arg)) {
    return std::optional<TensorRef>();
  }
  PTERO_ASSIGN_OR_RETURN(TensorRef ref, tensor(arg));
  return std::optional<TensorRef>(std::move(ref));
}

Result<std::vector<TensorRef>> OpCall::tensor_list(size_t arg) const {
  const auto* list = arg < arg_count() ? std::get_if<pte::ValueIdList>(&value(arg)) : nullptr;
  if (list == nullptr) {
    return wrong_kind(arg, "a list of Tensors");
  }
  std::vector<TensorRef> refs;
  for (const uint32_t id : list->ids) {
    if (!std::holds_alternative<pte::GraphTensor>(graph_.values[id])) {
      return wrong_kind(arg, "a list of Tensors");
    }
    PTERO_ASSIGN_OR_RETURN(TensorRef ref, make_ref(id));
    refs.push_back(std::move(ref));
  }
  return refs;
}

Result<int64_t> OpCall::integer_value(uint32_t id) const {
  const pte::GraphValue& value = graph_.values[id];
  if (const std::optional<int64_t> constant = constant_integer(value)) {
    return *constant;
  }
  PTERO_REJECT_IF(!std::holds_alternative<pte::SymInt>(value), invalid_program,
                  "Value {} (a {}) is not an integer.", id, kind_name(value));
  const ScalarState& state = live_.scalars[id];
  PTERO_REJECT_IF(state.where == ScalarState::Where::unset, invalid_program,
                  "SymInt (value {}) is used before anything sets it.", id);
  if (state.where == ScalarState::Where::device) {
    plan_.awaits = id;
    return make_error(ErrorCode::internal, "SymInt (value {}) is still on the device.", id);
  }
  if (state.base) {
    const std::pair<uint32_t, int64_t> read(id, state.value);
    if (std::find(plan_.scalars_read.begin(), plan_.scalars_read.end(), read) ==
        plan_.scalars_read.end()) {
      plan_.scalars_read.push_back(read);
    }
  }
  return state.value;
}

Result<int64_t> OpCall::integer(size_t arg) const {
  if (arg >= arg_count()) {
    return wrong_kind(arg, "an integer");
  }
  return integer_value(call_.args[arg]);
}

Result<int64_t> OpCall::integer_or(size_t arg, int64_t if_null) const {
  return is_null(arg) ? Result<int64_t>(if_null) : integer(arg);
}

Result<double> OpCall::number(size_t arg) const {
  if (arg < arg_count()) {
    if (const auto* number = std::get_if<double>(&value(arg))) {
      return *number;
    }
    if (const auto* integer = std::get_if<int64_t>(&value(arg))) {
      return static_cast<double>(*integer);
    }
    if (std::holds_alternative<pte::SymInt>(value(arg))) {
      PTERO_ASSIGN_OR_RETURN(const int64_t integer, integer_value(call_.args[arg]));
      return static_cast<double>(integer);
    }
  }
  return wrong_kind(arg, "a number");
}

Result<double> OpCall::number_or(size_t arg, double if_null) const {
  return is_null(arg) ? Result<double>(if_null) : number(arg);
}

Result<bool> OpCall::boolean(size_t arg) const {
  if (arg < arg_count()) {
    if (const auto* flag = std::get_if<bool>(&value(arg))) {
      return *flag;
    }
    if (const auto* integer = std::get_if<int64_t>(&value(arg));
        integer != nullptr && (*integer == 0 || *integer == 1)) {
      return *integer == 1;
    }
  }
  return wrong_kind(arg, "a Bool");
}

Result<std::string_view> OpCall::string(size_t arg) const {
  if (arg < arg_count()) {
    if (const auto* text = std::get_if<std::string>(&value(arg))) {
      return std::string_view(*text);
    }
  }
  return wrong_kind(arg, "a String");
}

Result<std::vector<int64_t>> OpCall::integer_list(size_t arg) const {
  if (arg < arg_count()) {
    if (const auto* list = std::get_if<pte::IntList>(&value(arg))) {
      return list->items;
    }
    if (const auto* list = std::get_if<pte::ValueIdList>(&value(arg))) {
      std::vector<int64_t> items;
      for (const uint32_t id : list->ids) {
        PTERO_ASSIGN_OR_RETURN(const int64_t item, integer_value(id), "in argument {}", arg);
        items.push_back(item);
      }
      return items;
    }
  }
  return wrong_kind(arg, "a list of integers");
}

Shape OpCall::bound(const TensorRef& tensor) const {
  Shape shape;
  for (const uint32_t dim : std::get<pte::GraphTensor>(graph_.values[tensor.id]).dims) {
    shape.append(dim);  // no more than kMaxRank: the planner made shapes of all dims
  }
  return shape;
}

Result<TensorRef> OpCall::output(size_t i) const {
  const uint32_t last = call_.args.back();
  uint32_t id = last;
  if (const auto* list = std::get_if<pte::ValueIdList>(&graph_.values[last])) {
    PTERO_REJECT_IF(i >= list->ids.size(), invalid_program,
                    "Output {} is missing; the call produces {}.", i, list->ids.size());
    id = list->ids[i];
  } else {
    PTERO_REJECT_IF(i != 0, invalid_program, "Output {} is missing; the call produces one.", i);
  }
  if (!std::holds_alternative<pte::GraphTensor>(graph_.values[id])) {
    return wrong_kind(arg_count() - 1, "a Tensor to produce");
  }
  return make_ref(id);
}

Status OpCall::set_shape(TensorRef& output, const Shape& shape) {
  const auto& bound = std::get<pte::GraphTensor>(graph_.values[output.id]);
  PTERO_REJECT_IF(shape.rank() != bound.dims.size(), invalid_program,
                  "Rank ({}) of the result {} differs from what the file states ({}).",
                  shape.rank(), to_string(shape), bound.dims.size());
  for (size_t i = 0; i < shape.rank(); ++i) {
    PTERO_REJECT_IF(shape[i] > bound.dims[i], invalid_argument,
                    "Dimension {} ({}) of the result {} exceeds the bound of the file ({}).", i,
                    shape[i], to_string(shape), bound.dims[i]);
  }
  output.shape = shape;
  live_.shapes[output.id] = shape;
  return ok_status();
}

Result<BufferRef> OpCall::scratch(uint64_t bytes) {
  PTERO_REJECT_IF(bytes == 0, internal, "Scratch of 0 bytes is asked for.");
  leases_.push_back(pool_.acquire(ceil_div<uint64_t>(bytes, 4) * 4));
  plan_.scratch.assign(pool_.slots().begin(), pool_.slots().end());
  return BufferRef(leases_.back().slot());
}

Status OpCall::dispatch_bytes(DispatchSpec spec, std::span<const std::byte> params) {
  const gpu::KernelSource& source = *spec.kernel.source;
  PTERO_REJECT_IF(spec.buffers.size() != source.bindings.size(), internal,
                  "Number of buffers ({}) for kernel ({}) differs from what it declares ({}).",
                  spec.buffers.size(), source.name, source.bindings.size());
  PTERO_REJECT_IF(params.size() != source.params_size, internal,
                  "Size of the parameters ({} bytes) for kernel ({}) differs from its Params ({} "
                  "bytes).",
                  params.size(), source.name, source.params_size);
  const gpu::Grid& grid = spec.grid;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
    return ok_status();
  }
  PTERO_REJECT_IF(std::max({grid.x, grid.y, grid.z}) > device_.limits.max_workgroups_per_dimension,
                  internal, "Grid ({} x {} x {} workgroups) of kernel ({}) exceeds the limit ({}).",
                  grid.x, grid.y, grid.z, source.name, device_.limits.max_workgroups_per_dimension);
  PlannedDispatch planned;
  planned.kernel = std::move(spec.kernel);
  for (const BufferRef& buffer : spec.buffers) {
    const bool is_scratch = buffer.kind == BufferRef::Kind::scratch;
    planned.bindings.push_back(
        {is_scratch, is_scratch ? buffer.id : storage_of(buffer), buffer.offset, buffer.size});
  }
  planned.params.assign(params.begin(), params.end());
  planned.grid = grid;
  planned.call = static_cast<uint32_t>(index_);
  if (spec.live_grid) {
    add_live_grid(*spec.live_grid, planned);
  }
  plan_.commands.emplace_back(std::move(planned));
  return ok_status();
}

uint32_t OpCall::storage_of(const BufferRef& buffer) const {
  return buffer.kind == BufferRef::Kind::slots ? *memory_.slot_storage
                                               : *memory_.storage_of[buffer.id];
}

Status OpCall::copy_unless_aliased(const TensorRef& input, const TensorRef& output) {
  PTERO_REJECT_IF(input.bytes() != output.bytes(), invalid_program,
                  "A view of {} elements as {} does not hold the same bytes.",
                  to_string(input.shape), to_string(output.shape));
  const uint32_t source = *memory_.storage_of[input.id];
  const uint32_t target = *memory_.storage_of[output.id];
  if (memory_.aliases[index_] || source == target || output.bytes() == 0) {
    return ok_status();
  }
  plan_.commands.emplace_back(PlannedCopy{source, target, ceil_div<uint64_t>(output.bytes(), 4) * 4,
                                          static_cast<uint32_t>(index_)});
  return ok_status();
}

std::optional<gpu::Grid> fold_grid(uint64_t workgroups, const gpu::Limits& limits) {
  const uint64_t limit = limits.max_workgroups_per_dimension;
  if (workgroups <= limit) {
    return gpu::Grid{static_cast<uint32_t>(workgroups), 1, 1};
  }
  // As few rows as there must be, all equally long, so that little of the last is idle.
  const uint64_t rows = ceil_div(workgroups, limit);
  if (rows > limit) {
    return std::nullopt;
  }
  return gpu::Grid{static_cast<uint32_t>(ceil_div(workgroups, rows)), static_cast<uint32_t>(rows),
                   1};
}

}  // namespace ptero::graph
