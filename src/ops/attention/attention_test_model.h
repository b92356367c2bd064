// SPDX-License-Identifier: BSD-3-Clause
// For GPU tests of attention: what it should compute, in double, and a session that computes it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/half.h"
#include "gpu/testing/test_device.h"
#include "graph/model.h"
#include "graph/session.h"
#include "graph/testing/graph_builder.h"
#include "ops/all_operators.h"
#include "ops/attention/attention_call.h"
#include "pte/graph.h"

namespace ptero::ops {

inline gpu::Device& attention_device() {
  static gpu::Device device = gpu::testing::open_device({.robustness = false});
  return device;
}

inline std::string route_name(AttentionRoute route) {
  constexpr const char* kNames[] = {"auto", "rows", "split", "tiles", "matrix", "materialized"};
  return kNames[static_cast<size_t>(route)];
}
inline graph::PlanOptions with_route(AttentionRoute route) {
  graph::PlanOptions options;
  options.sdpa_route = route_name(route);
  return options;
}
inline constexpr AttentionRoute kAttentionRoutes[] = {AttentionRoute::rows, AttentionRoute::split,
                                                      AttentionRoute::tiles,
                                                      AttentionRoute::materialized};

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

inline Floats random_floats(std::mt19937& random, size_t count, float scale = 1) {
  std::uniform_real_distribution<float> values(-scale, scale);
  Floats made(count);
  std::generate(made.begin(), made.end(), [&] { return values(random); });
  return made;
}

// Elements as a tensor of the type has them, and back; `values` become what the type can hold.
inline std::vector<std::byte> encode(Floats& values, pte::GraphDtype dtype) {
  std::vector<std::byte> bytes;
  const auto append = [&](const auto& item) {
    const auto from = std::as_bytes(std::span(&item, 1));
    bytes.insert(bytes.end(), from.begin(), from.end());
  };
  for (float& value : values) {
    if (dtype == pte::GraphDtype::float16) {
      const uint16_t half = float_to_half(value);
      value = half_to_float(half);
      append(half);
    } else {
      append(value);
    }
  }
  return bytes;
}
inline Floats decode(const std::vector<std::byte>& bytes, pte::GraphDtype dtype) {
  if (dtype == pte::GraphDtype::float32) {
    return gpu::testing::values_of<float>(bytes);
  }
  Floats values;
  for (const uint16_t half : gpu::testing::values_of<uint16_t>(bytes)) {
    values.push_back(half_to_float(half));
  }
  return values;
}

// One query [dim] against keys and values that lie `stride` elements apart; `bias` is added to the
// scores where there is one. All of -inf: zeros.
inline Doubles attend(const float* q, const float* k, const float* v, size_t stride, size_t keys,
                      size_t dim, double scale, const float* bias = nullptr) {
  Doubles scores(keys);
  double largest = -std::numeric_limits<double>::infinity();
  for (size_t c = 0; c < keys; ++c) {
    double score = 0;
    for (size_t d = 0; d < dim; ++d) {
      score += static_cast<double>(q[d]) * static_cast<double>(k[c * stride + d]);
    }
    scores[c] = score * scale + (bias != nullptr ? static_cast<double>(bias[c]) : 0);
    largest = std::max(largest, scores[c]);
  }
  Doubles sum(dim, 0);
  if (std::isinf(largest)) {
    return sum;
  }
  double total = 0;
  for (size_t c = 0; c < keys; ++c) {
    const double weight = std::exp(scores[c] - largest);
    total += weight;
    for (size_t d = 0; d < dim; ++d) {
      sum[d] += weight * static_cast<double>(v[c * stride + d]);
    }
  }
  for (double& value : sum) {
    value /= total;
  }
  return sum;
}

// Elements that are off by more than both tolerances; NaN is always off.
inline size_t elements_off(const Floats& got, const Doubles& want, double abs = 1e-4,
                           double rel = 1e-3) {
  REQUIRE(got.size() == want.size());
  size_t off = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - want[i]);
    off += error <= abs || error <= rel * std::abs(want[i]) ? 0 : 1;
  }
  return off;
}

struct CacheModel {
  uint32_t q_heads = 1;
  uint32_t kv_heads = 1;
  uint32_t dim = 4;
  uint32_t capacity = 16;
  pte::GraphDtype dtype = pte::GraphDtype::float32;
  pte::GraphDtype cache_dtype = pte::GraphDtype::float32;
  std::optional<double> scale;  // none: Null
  float q_range = 1;
  std::optional<int64_t> pinned;  // the position in the file, instead of one of each run
};

// sdpa_with_kv_cache on caches that start as NaN, beside the same in double.
class CacheSession {
 public:
  CacheSession(CacheModel model, AttentionRoute route, uint32_t seed = 1)
      : CacheSession(model, {}, with_route(route), seed) {}
  // `model.cache_dtype` is that of the file, which the passes may change.
  CacheSession(CacheModel model, graph::GraphPasses passes, graph::PlanOptions options,
               uint32_t seed = 1)
      : model_(model), random_(seed) {
    graph::testing::GraphBuilder builder;
    const uint32_t q = builder.input({1, model.capacity, model.q_heads, model.dim}, model.dtype);
    const uint32_t k = builder.input({1, model.capacity, model.kv_heads, model.dim}, model.dtype);
    const uint32_t v = builder.input({1, model.capacity, model.kv_heads, model.dim}, model.dtype);
    const graph::testing::Dims cache = {1, model.capacity, model.kv_heads, model.dim};
    const uint32_t k_cache = builder.constant("zeros", cache, model.cache_dtype);
    const uint32_t v_cache = builder.constant("zeros", cache, model.cache_dtype);
    const uint32_t position =
        builder.add(model.pinned ? pte::GraphValue(*model.pinned) : pte::GraphValue(pte::SymInt{}));
    const uint32_t y = builder.tensor({1, model.capacity, model.q_heads, model.dim}, model.dtype);
    builder.call("sdpa_with_kv_cache.default",
                 {q, k, v, k_cache, v_cache, position, builder.add(int64_t{1}),
                  builder.add(pte::Null{}), builder.add(int64_t{0}), builder.add(true),
                  builder.add(model.scale ? pte::GraphValue(*model.scale) : pte::Null{}), y});
    builder.outputs({y});
    pte::Graph graph = builder.graph();
    if (!model.pinned) {
      graph.inputs.push_back(position);
    }
    for (pte::GraphConstant& constant : graph.constants) {
      constant.data = ByteRange::whole(
          own_bytes(std::vector<std::byte>(constant.data.size(), std::byte{0xff})));
    }
    const size_t elements = size_t{model.capacity} * model.kv_heads * model.dim;
    k_.resize(elements, std::numeric_limits<float>::quiet_NaN());
    v_ = k_;
    session_ = gpu::testing::must(graph::GraphSession::create(
        gpu::testing::must(graph::GraphModel::load(attention_device(), std::move(graph),
                                                   all_operators(), passes, std::move(options))),
        {.poison_activations = true}));
  }

  struct Step {
    Floats q, k, v;
    Floats got;
    Doubles want;
  };
  // `rows` random rows at this position.
  Step step(uint32_t position, uint32_t rows) {
    Step made;
    made.q = random_floats(random_, size_t{rows} * model_.q_heads * model_.dim, model_.q_range);
    made.k = random_floats(random_, size_t{rows} * model_.kv_heads * model_.dim);
    made.v = random_floats(random_, made.k.size());
    run(position, rows, made);
    return made;
  }
  void run(uint32_t position, uint32_t rows, Step& step) {
    const auto outputs = gpu::testing::must(start(position, rows, step));
    step.got = decode(outputs.at(0).bytes, model_.dtype);
    REQUIRE(outputs.at(0).shape == graph::Shape{1, rows, model_.q_heads, model_.dim});

    const size_t width = size_t{model_.kv_heads} * model_.dim;
    Floats k = step.k;
    Floats v = step.v;
    encode(k, model_.cache_dtype);
    encode(v, model_.cache_dtype);
    std::copy(k.begin(), k.end(), k_.begin() + static_cast<std::ptrdiff_t>(position * width));
    std::copy(v.begin(), v.end(), v_.begin() + static_cast<std::ptrdiff_t>(position * width));
    const double scale = model_.scale.value_or(1 / std::sqrt(static_cast<double>(model_.dim)));
    for (uint32_t s = 0; s < rows; ++s) {
      for (uint32_t h = 0; h < model_.q_heads; ++h) {
        const size_t head = h / (model_.q_heads / model_.kv_heads) * size_t{model_.dim};
        const Doubles y =
            attend(step.q.data() + (size_t{s} * model_.q_heads + h) * model_.dim, k_.data() + head,
                   v_.data() + head, width, position + s + 1, model_.dim, scale);
        step.want.insert(step.want.end(), y.begin(), y.end());
      }
    }
  }
  // Only what the device is asked; for runs that fail.
  auto start(uint32_t position, uint32_t rows, Step& step)
      -> Result<std::unique_ptr<gpu::Pending<std::vector<graph::RunOutput>>>> {
    const auto shape = [&](uint32_t heads) { return graph::Shape{1, rows, heads, model_.dim}; };
    bytes_ = {encode(step.q, model_.dtype), encode(step.k, model_.dtype),
              encode(step.v, model_.dtype)};
    std::vector<graph::RunInput> inputs = {{{shape(model_.q_heads), 0}, bytes_[0]},
                                           {{shape(model_.kv_heads), 0}, bytes_[1]},
                                           {{shape(model_.kv_heads), 0}, bytes_[2]}};
    if (!model_.pinned) {
      inputs.push_back({{{}, position}, {}});
    }
    return session_->run(inputs);
  }

  graph::GraphSession& session() { return *session_; }

 private:
  CacheModel model_;
  std::mt19937 random_;
  Floats k_, v_;  // as the caches should be
  std::vector<std::vector<std::byte>> bytes_;
  std::unique_ptr<graph::GraphSession> session_;
};

}  // namespace ptero::ops
