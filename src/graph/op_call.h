// SPDX-License-Identifier: BSD-3-Clause
// What an operator function sees: its arguments at their live shapes and values, and the verbs to
// say what comes out. It sees no device: it names kernels, buffers, parameters and grids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"
#include "gpu/step.h"
#include "graph/memory_plan.h"
#include "graph/plan.h"
#include "graph/plan_options.h"
#include "graph/scratch_pool.h"
#include "graph/shape.h"
#include "pte/graph.h"

namespace ptero::graph {

// A tensor argument. Cheap to copy.
struct TensorRef {
  uint32_t id = 0;
  pte::GraphDtype dtype = pte::GraphDtype::float32;
  Shape shape;  // live
  bool constant = false;

  uint64_t numel() const { return shape.numel(); }
  uint64_t bytes() const;  // of the live shape, dense
  bool is_float() const;
};

// What a dispatch binds: a tensor, scratch or the scalars' slots, whole or in part. Offsets and
// sizes as in gpu::Binding.
struct BufferRef {
  enum class Kind : uint8_t { tensor, scratch, slots };

  BufferRef(const TensorRef& tensor) : BufferRef(tensor, 0, 0) {}  // NOLINT: implicit
  BufferRef(const TensorRef& tensor, uint64_t from, uint64_t bytes)
      : kind(Kind::tensor), id(tensor.id), offset(from), size(bytes) {}
  explicit BufferRef(uint32_t scratch) : kind(Kind::scratch), id(scratch) {}
  static BufferRef slots() {
    BufferRef ref(0);
    ref.kind = Kind::slots;
    return ref;
  }

  Kind kind;
  uint32_t id;
  uint64_t offset = 0;
  uint64_t size = 0;
};

// An integer as kernels read it, an element of the binding OpCall::slots().
struct Slot {
  uint32_t index = 0;
  ScalarOperand operand;
};

// A grid that follows a SymInt; see LiveGrid. Where the device alone knows the value, the grid
// stays as the dispatch has it, so surplus workgroups must leave early.
struct SlotGrid {
  uint8_t axis = 0;  // 0: x, 1: y, 2: z
  Slot slot;
  int64_t add = 0;
  uint32_t divide = 1;
};

struct DispatchSpec {
  gpu::KernelKey kernel;
  std::vector<BufferRef> buffers;  // one per binding of the kernel, in its order
  gpu::Grid grid;                  // workgroups; nothing is recorded when one is 0
  std::optional<SlotGrid> live_grid = std::nullopt;
};

// What planning may depend on besides the graph; the same for all plans of a graph.
struct DeviceFacts {
  gpu::Limits limits;
  gpu::FeatureSet features;
  bool is_software = false;
  uint32_t subgroup_min_size = 0;
  uint32_t subgroup_max_size = 0;
  std::vector<gpu::MatrixShape> matrix_shapes;
  PlanOptions options;
};

// Argument positions are those of the file: the schema's order, then what the call produces.
// Readers of arguments fail with invalid_program (wrong kind of value) or unsupported.
class OpCall {
 public:
  // `host_inputs`: by position in pte::Graph::inputs, the bytes that the host may read; empty when
  // they are on the device or the graph changes them. `pool` is that of the plan, whose slots are
  // Plan::scratch; what the call takes from it is free again when the call is no more.
  OpCall(const pte::Graph& graph, size_t index, const DeviceFacts& device, const MemoryPlan& memory,
         std::span<const std::span<const std::byte>> host_inputs, LiveValues& live, Plan& plan,
         ScratchPool& pool);

  const std::string& name() const { return call_.name; }
  size_t arg_count() const { return call_.args.size(); }
  const DeviceFacts& device() const { return device_; }

  bool is_null(size_t arg) const;
  Result<TensorRef> tensor(size_t arg) const;
  Result<std::optional<TensorRef>> optional_tensor(size_t arg) const;  // empty for Null
  Result<std::vector<TensorRef>> tensor_list(size_t arg) const;
  // Int, integral Double, or the live value of a SymInt, on which the plan then depends: for
  // shapes. When only the device knows it, planning stops here and goes on once it has been read
  // back.
  Result<int64_t> integer(size_t arg) const;
  Result<int64_t> integer_or(size_t arg, int64_t if_null) const;
  Result<double> number(size_t arg) const;  // Double, Int or SymInt
  Result<double> number_or(size_t arg, double if_null) const;
  Result<bool> boolean(size_t arg) const;  // Bool, or Int 0 and 1
  Result<std::string_view> string(size_t arg) const;
  // An IntList, or a ValueIdList of Int and SymInt.
  Result<std::vector<int64_t>> integer_list(size_t arg) const;

  // For data: an Int or a SymInt that kernels read as they run; the plan holds for all its values.
  // Those outside [lowest, highest], a range within 32 bits, end the run with an error that names
  // the argument, so what is recorded need not be right for them; it must stay in bounds, though.
  Result<Slot> slot(size_t arg, int64_t lowest, int64_t highest);
  BufferRef slots() const { return BufferRef::slots(); }  // array<i32>
  // Whether the value may differ between runs of this plan.
  bool varies(size_t arg) const;
  // Argument `to` minus argument `from`, if it is the same in every run of this plan.
  std::optional<int64_t> distance(size_t from, size_t to) const;

  // The tensor that the call produces, or the i-th of several. Its shape is the bound until
  // set_shape() makes it live.
  Result<TensorRef> output(size_t i = 0) const;
  // The largest shape of a tensor: what the file states.
  Shape bound(const TensorRef& tensor) const;
  // Every output tensor gets a shape, within the bounds that the file states.
  Status set_shape(TensorRef& output, const Shape& shape);
  // For operators that produce a SymInt: a value that follows from shapes; a function of two
  // arguments, false when only the device knows one of them; an element of a graph input, false
  // when the host does not have it.
  Status set_scalar(int64_t value);
  Result<bool> set_scalar(const ScalarFunction& function, size_t a, size_t b);
  Result<bool> set_scalar_element(const TensorRef& x, uint64_t element);
  // The operator's kernel writes it instead, at this index of slots(): kNoScalar when it does not
  // fit 32 bits.
  Result<uint32_t> set_scalar_on_device();

  // Scratch for this call, at least `bytes` (above 0), that no other scratch of the call shares.
  // It holds what earlier calls left.
  Result<BufferRef> scratch(uint64_t bytes);

  // Records a dispatch. `params` is the struct generated from the kernel's file.
  template <typename Params>
  Status dispatch(DispatchSpec spec, const Params& params) {
    static_assert(std::is_trivially_copyable_v<Params>);
    return dispatch_bytes(std::move(spec), std::as_bytes(std::span(&params, 1)));
  }
  Status dispatch(DispatchSpec spec) { return dispatch_bytes(std::move(spec), {}); }

  // For view operators: nothing when the memory plan lets the output share the input's memory,
  // otherwise a copy of the live bytes.
  Status copy_unless_aliased(const TensorRef& input, const TensorRef& output);

 private:
  const pte::GraphValue& value(size_t arg) const { return graph_.values[call_.args[arg]]; }
  Result<TensorRef> make_ref(uint32_t id) const;
  Result<int64_t> integer_value(uint32_t id) const;
  Result<ScalarOperand> operand(size_t arg) const;
  std::optional<ScalarState> linear(size_t arg) const;
  Result<uint32_t> scalar_output() const;
  Error wrong_kind(size_t arg, std::string_view wanted) const;
  Status dispatch_bytes(DispatchSpec spec, std::span<const std::byte> params);
  uint32_t storage_of(const BufferRef& buffer) const;
  void add_live_grid(const SlotGrid& follow, PlannedDispatch& dispatch);

  const pte::Graph& graph_;
  const pte::OperatorCall& call_;
  size_t index_;
  const DeviceFacts& device_;
  const MemoryPlan& memory_;
  std::span<const std::span<const std::byte>> host_inputs_;
  LiveValues& live_;
  Plan& plan_;
  ScratchPool& pool_;
  std::vector<ScratchPool::Lease> leases_;
};

// Spreads `workgroups` over x and y so that none exceeds the device's limit; a kernel rebuilds the
// index as id.x + id.y * num_workgroups.x * workgroup size. Empty when even that is too few.
std::optional<gpu::Grid> fold_grid(uint64_t workgroups, const gpu::Limits& limits);

}  // namespace ptero::graph
