// SPDX-License-Identifier: BSD-3-Clause
// For the tests of this folder: the plans of this folder's operators, executed on the CPU by a
// model of its three kernels.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

#include <doctest/doctest.h>

#include "graph/testing/graph_builder.h"
#include "ops/all_operators.h"
#include "ops/shape/concat_rows.wgsl.h"
#include "ops/shape/strided_copy.wgsl.h"
#include "ops/shape/strided_copy_packed.wgsl.h"

namespace ptero::ops::shape_testing {

using graph::Shape;
using graph::testing::Dims;
using graph::testing::GraphBuilder;
using graph::testing::Planned;
using pte::GraphDtype;
using Numbers = std::vector<uint32_t>;

template <typename Params>
Params params_of(const graph::PlannedDispatch& dispatch) {
  Params params;
  REQUIRE(dispatch.params.size() == sizeof(params));
  std::memcpy(&params, dispatch.params.data(), sizeof(params));
  return params;
}

inline double override_of(const graph::PlannedDispatch& dispatch, std::string_view name) {
  return gpu::override_value(dispatch.kernel, name).value();
}

constexpr uint32_t kNoSource = 0xffffffff;

template <typename Params>
uint32_t source_of(const Params& p, bool windowed, uint32_t i) {
  uint32_t at = p.base;
  for (uint32_t axis = 0; axis < p.rank; ++axis) {
    uint32_t coordinate = i % p.dims[axis / 4][axis % 4];
    i /= p.dims[axis / 4][axis % 4];
    if (windowed) {
      coordinate -= p.lows[axis / 4][axis % 4];
      if (coordinate >= p.sizes[axis / 4][axis % 4]) {
        return kNoSource;
      }
    }
    at += coordinate * p.strides[axis / 4][axis % 4];
  }
  return at;
}

inline void execute(const graph::PlannedDispatch& dispatch, const Numbers& x, Numbers& y) {
  if (dispatch.kernel.source == &wgsl::kConcatRows) {
    const auto p = params_of<wgsl::ConcatRowsParams>(dispatch);
    for (uint32_t i = 0; i < p.n; ++i) {
      y.at(p.y_base + i / p.row * p.y_row + i % p.row) = x.at(i);
    }
    return;
  }
  const bool windowed = override_of(dispatch, "windowed") != 0;
  if (dispatch.kernel.source == &wgsl::kStridedCopy) {
    const auto p = params_of<wgsl::StridedCopyParams>(dispatch);
    for (uint32_t i = 0; i < p.n; ++i) {
      const uint32_t at = source_of(p, windowed, i);
      y.at(i) = at == kNoSource ? p.fill : x.at(at);
    }
    return;
  }
  REQUIRE(dispatch.kernel.source == &wgsl::kStridedCopyPacked);
  const auto p = params_of<wgsl::StridedCopyPackedParams>(dispatch);
  const auto per_word = static_cast<uint32_t>(override_of(dispatch, "per_word"));
  const bool keep = override_of(dispatch, "keep") != 0;
  const uint32_t bits = 32 / per_word;
  const uint32_t mask = (1u << bits) - 1;
  for (uint32_t word = 0; word <= (p.n - 1) / per_word; ++word) {
    uint32_t value = keep ? y.at(word) : 0;
    for (uint32_t e = 0; e < std::min(per_word, p.n - word * per_word); ++e) {
      const uint32_t at = source_of(p, windowed, word * per_word + e);
      if (at == kNoSource && keep) {
        continue;
      }
      const uint32_t element =
          at == kNoSource ? p.fill : (x.at(at / per_word) >> (at % per_word * bits)) & mask;
      value = (value & ~(mask << (e * bits))) | (element << (e * bits));
    }
    y.at(word) = value;
  }
}

inline uint32_t bits_of(GraphDtype dtype) {
  return 8 * pte::element_size(dtype).value();
}

inline Numbers pack(const Numbers& numbers, GraphDtype dtype) {
  const uint32_t per_word = 32 / bits_of(dtype);
  Numbers words((numbers.size() + per_word - 1) / per_word);
  for (size_t i = 0; i < numbers.size(); ++i) {
    words[i / per_word] |= numbers[i] << (i % per_word * bits_of(dtype));
  }
  return words;
}

inline Numbers unpack(const Numbers& words, uint64_t count, GraphDtype dtype) {
  const uint32_t per_word = 32 / bits_of(dtype);
  Numbers numbers;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t shifted = words.at(i / per_word) >> (i % per_word * bits_of(dtype));
    numbers.push_back(dtype == GraphDtype::float32 || dtype == GraphDtype::int32
                          ? shifted
                          : shifted & ((1u << bits_of(dtype)) - 1));
  }
  return numbers;
}

inline Numbers iota(uint64_t count, uint32_t first = 0) {
  Numbers numbers(count);
  for (uint32_t i = 0; i < count; ++i) {
    numbers[i] = first + i;
  }
  return numbers;
}

// One call on inputs whose elements are 0, 1, 2, ... for the first, 100, 101, ... for the second,
// and so on; outputs start from garbage. Checks the live shapes, gives the outputs' elements.
struct Run {
  std::vector<Numbers> outputs;
  Planned planned;
};

inline Run run(const GraphBuilder& g, const std::vector<Shape>& live,
               const std::vector<Shape>& shapes) {
  Result<Planned> planned = graph::testing::plan_graph(g, all_operators(), live);
  REQUIRE_MESSAGE(planned.ok(), (planned.ok() ? "" : planned.error().to_string()));
  CHECK(planned->plan->output_shapes == shapes);
  std::vector<Numbers> memory;
  for (const graph::Storage& storage : planned->memory.storages) {
    memory.emplace_back(storage.bytes / 4, 0xa5a5a5a5);
  }
  const auto tensor = [&](uint32_t id) { return std::get<pte::GraphTensor>(g.graph().values[id]); };
  for (size_t i = 0; i < g.graph().inputs.size(); ++i) {
    const uint32_t id = g.graph().inputs[i];
    const uint64_t count = live.empty() ? Shape::from(tensor(id).dims)->numel() : live[i].numel();
    const Numbers words = pack(iota(count, static_cast<uint32_t>(100 * i)), tensor(id).dtype);
    std::copy(words.begin(), words.end(), memory[*planned->memory.storage_of[id]].begin());
  }
  for (size_t i = 0; i < planned->plan->commands.size(); ++i) {
    const graph::PlannedDispatch& dispatch = planned->dispatch(i);
    execute(dispatch, memory[dispatch.bindings.at(0).id], memory[dispatch.bindings.at(1).id]);
  }
  Run result;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const uint32_t id = g.graph().outputs[i];
    result.outputs.push_back(
        unpack(memory[*planned->memory.storage_of[id]], shapes[i].numel(), tensor(id).dtype));
  }
  result.planned = std::move(planned).value();
  return result;
}

inline std::string failure(const GraphBuilder& g, const std::vector<Shape>& live = {}) {
  const Result<Planned> planned = graph::testing::plan_graph(g, all_operators(), live);
  return planned.ok() ? "(no error)" : planned.error().message();
}

constexpr GraphDtype kAllTypes[] = {GraphDtype::float32, GraphDtype::int32, GraphDtype::float16,
                                    GraphDtype::int8,    GraphDtype::uint8, GraphDtype::boolean};

// Elements of a dense result from its coordinates.
inline Numbers by_coordinates(const Dims& dims,
                              const std::function<uint32_t(const Dims&)>& element) {
  Numbers numbers;
  Dims at(dims.size());
  const uint64_t count = Shape::from(dims)->numel();
  for (uint64_t i = 0; i < count; ++i) {
    numbers.push_back(element(at));
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++at[axis] < dims[axis]) {
        break;
      }
      at[axis] = 0;
    }
  }
  return numbers;
}

// y = op(x, integer arguments...) where the graph says only the largest shapes.
inline GraphBuilder unary(const char* name, const Dims& x,
                          const std::vector<pte::GraphValue>& arguments, const Dims& y,
                          GraphDtype dtype = GraphDtype::float32) {
  GraphBuilder g;
  std::vector<uint32_t> args = {g.input(x, dtype)};
  for (const pte::GraphValue& argument : arguments) {
    args.push_back(g.add(argument));
  }
  args.push_back(g.tensor(y, dtype));
  g.outputs({args.back()});
  g.call(name, args);
  return g;
}

constexpr int64_t kEnd = INT64_MAX;

}  // namespace ptero::ops::shape_testing
