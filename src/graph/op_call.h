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
#include "graph/plan.h"
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

// What a dispatch binds: a tensor or scratch, whole or in part. Offsets and sizes as in
// gpu::Binding.
struct BufferRef {
  BufferRef(const TensorRef& tensor) : BufferRef(tensor, 0, 0) {}  // NOLINT: implicit
  BufferRef(const TensorRef& tensor, uint64_t from, uint64_t bytes)
      : is_scratch(false), id(tensor.id), offset(from), size(bytes) {}
  explicit BufferRef(uint32_t scratch) : is_scratch(true), id(scratch) {}

  bool is_scratch;
  uint32_t id;
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct DispatchSpec {
  gpu::KernelKey kernel;
  std::vector<BufferRef> buffers;  // one per binding of the kernel, in its order
  gpu::Grid grid;                  // workgroups; nothing is recorded when one is 0
};

// Facts about the device that planning may depend on; the same for all plans of a graph.
struct DeviceFacts {
  gpu::Limits limits;
  gpu::FeatureSet features;
  bool is_software = false;
  uint32_t subgroup_min_size = 0;
  uint32_t subgroup_max_size = 0;
};

// Argument positions are those of the file: the schema's order, then what the call produces.
// Readers of arguments fail with invalid_program (wrong kind of value) or unsupported.
class OpCall {
 public:
  OpCall(const pte::Graph& graph, size_t index, const DeviceFacts& device,
         const std::vector<std::optional<uint32_t>>& storage_of, bool alias, LiveValues& live,
         Plan& plan);

  const std::string& name() const { return call_.name; }
  size_t arg_count() const { return call_.args.size(); }
  const DeviceFacts& device() const { return device_; }

  bool is_null(size_t arg) const;
  Result<TensorRef> tensor(size_t arg) const;
  Result<std::optional<TensorRef>> optional_tensor(size_t arg) const;  // empty for Null
  Result<std::vector<TensorRef>> tensor_list(size_t arg) const;
  // Int, integral Double, or the live value of a SymInt, on which the plan then depends.
  Result<int64_t> integer(size_t arg) const;
  Result<int64_t> integer_or(size_t arg, int64_t if_null) const;
  Result<double> number(size_t arg) const;  // Double or Int
  Result<double> number_or(size_t arg, double if_null) const;
  Result<bool> boolean(size_t arg) const;  // Bool, or Int 0 and 1
  Result<std::string_view> string(size_t arg) const;
  // An IntList, or a ValueIdList of Int and SymInt.
  Result<std::vector<int64_t>> integer_list(size_t arg) const;

  // The tensor that the call produces, or the i-th of several. Its shape is the bound until
  // set_shape() makes it live.
  Result<TensorRef> output(size_t i = 0) const;
  // The largest shape of a tensor: what the file states.
  Shape bound(const TensorRef& tensor) const;
  // Every output tensor gets a shape, within the bounds that the file states.
  Status set_shape(TensorRef& output, const Shape& shape);
  // For operators that produce a SymInt.
  Status set_scalar(int64_t value);

  // Scratch for this call, at least `bytes` (above 0); the returned buffer is not zeroed.
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
  Error wrong_kind(size_t arg, std::string_view wanted) const;
  Status dispatch_bytes(DispatchSpec spec, std::span<const std::byte> params);

  const pte::Graph& graph_;
  const pte::OperatorCall& call_;
  size_t index_;
  const DeviceFacts& device_;
  const std::vector<std::optional<uint32_t>>& storage_of_;
  bool alias_;
  LiveValues& live_;
  Plan& plan_;
};

// Spreads `workgroups` over x and y so that none exceeds the device's limit; a kernel rebuilds the
// index as id.x + id.y * num_workgroups.x * workgroup size. Empty when even that is too few.
std::optional<gpu::Grid> fold_grid(uint64_t workgroups, const gpu::Limits& limits);

}  // namespace ptero::graph
