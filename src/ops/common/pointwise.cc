// SPDX-License-Identifier: BSD-3-Clause
#include "ops/common/pointwise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include "base/checked.h"
#include "ops/common/kernel_types.h"
#include "ops/common/pointwise_binary.wgsl.h"
#include "ops/common/pointwise_broadcast.wgsl.h"
#include "ops/common/pointwise_unary.wgsl.h"
#include "ops/common/rows.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;
using pte::GraphDtype;

// How elements of a type lie in words of 32 bits, in WGSL.
struct Codec {
  uint32_t lanes;           // elements a word
  std::string_view decode;  // of element i of buffer {0}
  std::string_view result;  // the type that encode() takes
  std::string_view encode;  // bits of r, for one lane
};

Result<Codec> codec_of(const TensorRef& tensor) {
  switch (tensor.dtype) {
    case GraphDtype::float32:
      return Codec{1, "bitcast<f32>({0}[i])", "f32", "bitcast<u32>(r)"};
    case GraphDtype::float16:
      return Codec{2, "unpack2x16float({0}[i / 2u])[i % 2u]", "f32", "half_bits(r)"};
    case GraphDtype::int32:
      return Codec{1, "bitcast<i32>({0}[i])", "i32", "bitcast<u32>(r)"};
    case GraphDtype::int8:
      return Codec{4, "bitcast<i32>({0}[i / 4u] << (24u - i % 4u * 8u)) >> 24u", "i32",
                   "bitcast<u32>(r) & 0xffu"};
    case GraphDtype::uint8:
      return Codec{4, "bitcast<i32>(({0}[i / 4u] >> (i % 4u * 8u)) & 0xffu)", "i32",
                   "bitcast<u32>(r) & 0xffu"};
    case GraphDtype::boolean:
      return Codec{4, "bitcast<i32>(({0}[i / 4u] >> (i % 4u * 8u)) & 0xffu)", "bool",
                   "select(0u, 1u, r)"};
    default:
      return make_error(ErrorCode::unsupported,
                        "Element type ({}) of tensor {} has no elementwise kernel.",
                        pte::name_of(tensor.dtype), tensor.id);
  }
}

Result<std::string> prelude_of(std::span<const TensorRef* const> operands, const Codec& result,
                               const Elementwise& what) {
  std::string text = fmt::format("alias C = {};\nconst kLanes = {}u;\n",
                                 what.compute == Compute::f32 ? "f32" : "i32", result.lanes);
  std::string names;
  for (size_t i = 0; i < operands.size(); ++i) {
    const char name[] = {static_cast<char>('a' + i), '\0'};
    PTERO_ASSIGN_OR_RETURN(const Codec codec, codec_of(*operands[i]));
    text += fmt::format("fn load_{}(i: u32) -> C {{\n  return C({});\n}}\n", name,
                        fmt::format(fmt::runtime(codec.decode), name));
    names += fmt::format("{}: C, ", name);
  }
  text +=
      fmt::format("fn encode(r: {}) -> u32 {{\n  return {};\n}}\n", result.result, result.encode);
  text +=
      fmt::format("fn apply({}s: vec2<C>) -> {} {{\n  {}\n}}\n", names, result.result, what.body);
  return text;
}

uint64_t element_bytes(const TensorRef& tensor) {
  return pte::element_size(tensor.dtype).value_or(4);
}

// One dispatch over all of y, or several over parts where a tensor exceeds what a binding holds.
// Operands are dense (step 1) or one element (step 0).
template <typename Params>
Status dispatch_dense(OpCall& op, const gpu::KernelSource& kernel, const std::string& prelude,
                      std::span<const TensorRef* const> operands, std::span<const uint32_t> steps,
                      const TensorRef& y, uint32_t lanes, Params params) {
  constexpr uint64_t kGroup = 4;  // elements that are whole words in every type
  std::vector<const TensorRef*> tensors(operands.begin(), operands.end());
  tensors.push_back(&y);
  std::vector<uint64_t> group_bytes;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool dense = i == operands.size() || steps[i] != 0;
    group_bytes.push_back(dense ? kGroup * element_bytes(*tensors[i]) : 0);
  }
  const uint64_t groups = ceil_div(y.numel(), kGroup);
  PTERO_ASSIGN_OR_RETURN(
      const std::vector<RowBlock> blocks,
      split_into_bindings("groups of elements", groups, group_bytes, op.device().limits));
  for (const RowBlock& block : blocks) {
    const uint64_t first = block.first * kGroup;
    const uint64_t count = std::min(block.count * kGroup, y.numel() - first);
    std::vector<graph::BufferRef> buffers;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (blocks.size() == 1 || group_bytes[i] == 0) {
        buffers.emplace_back(*tensors[i]);
      } else {
        const uint64_t bytes = count * element_bytes(*tensors[i]);
        buffers.emplace_back(*tensors[i], block.first * group_bytes[i],
                             ceil_div<uint64_t>(bytes, 4) * 4);
      }
    }
    params.n = static_cast<uint32_t>(count);
    PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, ceil_div<uint64_t>(count, lanes)));
    PTERO_RETURN_IF_ERROR(op.dispatch({{&kernel, prelude, {}, {}}, buffers, grid}, params));
  }
  return ok_status();
}

Status check_count(const TensorRef& y) {
  constexpr uint64_t kMost = uint64_t{1} << 31;  // indices stay clear of 32 bits behind the end too
  PTERO_REJECT_IF(y.numel() > kMost, unsupported,
                  "Number of elements ({}) of the result {} exceeds the limit of the kernels ({}).",
                  y.numel(), to_string(y.shape), kMost);
  return ok_status();
}

}  // namespace

Compute compute_of(GraphDtype dtype) {
  return dtype == GraphDtype::float32 || dtype == GraphDtype::float16 ? Compute::f32 : Compute::i32;
}

Result<Compute> arithmetic_compute(const TensorRef& y,
                                   std::initializer_list<const TensorRef*> operands) {
  PTERO_REJECT_IF(y.dtype == GraphDtype::boolean, unsupported,
                  "Result {} is bool, for which there is no arithmetic.", y.id);
  const Compute compute = compute_of(y.dtype);
  for (const TensorRef* operand : operands) {
    PTERO_REJECT_IF(compute == Compute::i32 && operand->is_float(), unsupported,
                    "Element types ({} and {}) of operand {} and result {} do not go together.",
                    pte::name_of(operand->dtype), pte::name_of(y.dtype), operand->id, y.id);
  }
  return compute;
}

Walk walk(const Shape& shape, std::initializer_list<const TensorRef*> operands) {
  Walk result;
  result.strides.assign(operands.size(), {});
  std::vector<std::array<uint32_t, graph::kMaxRank>> from;
  for (const TensorRef* operand : operands) {
    from.push_back(graph::broadcast_strides(operand->shape, shape));
  }
  uint32_t rank = 0;
  for (size_t axis = shape.rank(); axis-- > 0;) {
    if (shape[axis] == 1) {
      continue;
    }
    bool merges = rank > 0;
    for (size_t i = 0; i < from.size() && merges; ++i) {
      merges = from[i][axis] == result.strides[i][rank - 1] * result.dims[rank - 1];
    }
    if (merges) {
      result.dims[rank - 1] *= shape[axis];
      continue;
    }
    result.dims[rank] = shape[axis];
    for (size_t i = 0; i < from.size(); ++i) {
      result.strides[i][rank] = from[i][axis];
    }
    ++rank;
  }
  result.rank = std::max(rank, 1u);
  return result;
}

std::array<std::array<uint32_t, 4>, 2> axes(const std::array<uint32_t, graph::kMaxRank>& values) {
  std::array<std::array<uint32_t, 4>, 2> result = {};
  for (size_t i = 0; i < values.size(); ++i) {
    result[i / 4][i % 4] = values[i];
  }
  return result;
}

Status pointwise(OpCall& op, const TensorRef& x, TensorRef& y, const Elementwise& what) {
  PTERO_RETURN_IF_ERROR(op.set_shape(y, x.shape));
  PTERO_RETURN_IF_ERROR(check_count(y));
  PTERO_ASSIGN_OR_RETURN(const Codec codec, codec_of(y));
  const TensorRef* const operands[] = {&x};
  PTERO_ASSIGN_OR_RETURN(const std::string prelude, prelude_of(operands, codec, what));
  const uint32_t steps[] = {1};
  return dispatch_dense(op, wgsl::kPointwiseUnary, prelude, operands, steps, y, codec.lanes,
                        wgsl::PointwiseUnaryParams{.s = what.scalars});
}

Status pointwise(OpCall& op, const TensorRef& a, const TensorRef& b, TensorRef& y,
                 const Elementwise& what) {
  PTERO_ASSIGN_OR_RETURN(const Shape shape, graph::broadcast(a.shape, b.shape));
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
  PTERO_RETURN_IF_ERROR(check_count(y));
  PTERO_ASSIGN_OR_RETURN(const Codec codec, codec_of(y));
  const TensorRef* const operands[] = {&a, &b};
  PTERO_ASSIGN_OR_RETURN(const std::string prelude, prelude_of(operands, codec, what));
  const Walk path = walk(shape, {&a, &b});
  if (path.rank == 1) {
    const uint32_t steps[] = {path.step(0), path.step(1)};
    return dispatch_dense(
        op, wgsl::kPointwiseBinary, prelude, operands, steps, y, codec.lanes,
        wgsl::PointwiseBinaryParams{.a_step = steps[0], .b_step = steps[1], .s = what.scalars});
  }
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid,
                         linear_grid(op, ceil_div<uint64_t>(y.numel(), codec.lanes)));
  return op.dispatch({{&wgsl::kPointwiseBroadcast, prelude, {}, {}}, {a, b, y}, grid},
                     wgsl::PointwiseBroadcastParams{.n = static_cast<uint32_t>(y.numel()),
                                                    .rank = path.rank,
                                                    .s = what.scalars,
                                                    .dims = axes(path.dims),
                                                    .a_strides = axes(path.strides[0]),
                                                    .b_strides = axes(path.strides[1])});
}

Result<double> scalar(const OpCall& op, size_t arg) {
  if (const Result<bool> flag = op.boolean(arg); flag.ok()) {
    return *flag ? 1.0 : 0.0;
  }
  if (const Result<double> number = op.number(arg); number.ok()) {
    return *number;
  }
  PTERO_ASSIGN_OR_RETURN(const int64_t integer, op.integer(arg));
  return static_cast<double>(integer);
}

uint32_t float_bits(double value) {
  // Halfway from the largest float32 to the next power of two, and beyond, rounds to infinity.
  constexpr double kOverflow = 0x1.ffffffp127;
  const float rounded = std::abs(value) < kOverflow || std::isnan(value)
                            ? static_cast<float>(value)
                            : std::copysign(std::numeric_limits<float>::infinity(),
                                            static_cast<float>(std::signbit(value) ? -1 : 1));
  return std::bit_cast<uint32_t>(rounded);
}

Result<int32_t> saturated_int(double value) {
  PTERO_REJECT_IF(std::isnan(value) || (std::isfinite(value) && value != std::trunc(value)),
                  unsupported, "Number ({}) for integer elements is not a whole one.", value);
  constexpr double kLow = std::numeric_limits<int32_t>::min();
  constexpr double kHigh = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::clamp(value, kLow, kHigh));
}

}  // namespace ptero::ops
