// SPDX-License-Identifier: BSD-3-Clause
// custom_sdpa, et_vk.sdpa and update_cache on a device: masks, caches that are given whole, and
// splits of many keys.
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "gpu/testing/test_device.h"
#include "ops/attention/attention_test_model.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using graph::testing::Dims;
using graph::testing::GraphBuilder;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Operand {
  Dims dims;
  Floats values;
};
Operand random_operand(std::mt19937& random, Dims dims, float scale = 1) {
  size_t count = 1;
  for (const uint32_t dim : dims) {
    count *= dim;
  }
  return {std::move(dims), random_floats(random, count, scale)};
}

// Runs one operator on these tensors, and on the other arguments, which stand where `tensors` has
// no dimensions. The result has the dimensions of the first.
Floats run(AttentionRoute route, const std::string& name, const std::vector<Operand>& operands,
           std::vector<pte::GraphValue> others) {
  GraphBuilder builder;
  std::vector<uint32_t> args;
  std::vector<graph::RunInput> inputs;
  auto other = others.begin();
  for (const Operand& operand : operands) {
    if (operand.dims.empty()) {
      args.push_back(builder.add(std::move(*other++)));
      continue;
    }
    args.push_back(builder.input(operand.dims));
    inputs.push_back(
        {{must(graph::Shape::from(operand.dims)), 0}, std::as_bytes(std::span(operand.values))});
  }
  args.push_back(builder.tensor(operands[0].dims));
  builder.outputs({args.back()});
  builder.call(name, args);
  const auto model = must(graph::GraphModel::load(attention_device(), builder.graph(),
                                                  all_operators(), {}, with_route(route)));
  const auto session = must(graph::GraphSession::create(model, {.poison_activations = true}));
  return values_of<float>(must(session->run(inputs)).at(0).bytes);
}

const Operand kOther{};

TEST_CASE("et_vk.sdpa: heads before rows, keys of another number, masks that broadcast") {
  std::mt19937 random(3);
  constexpr uint32_t kBatches = 2;
  constexpr uint32_t kHeads = 3;
  constexpr uint32_t kRows = 5;
  constexpr uint32_t kDim = 8;
  for (const uint32_t keys : {1u, 5u, 70u, 200u}) {
    const Operand q = random_operand(random, {kBatches, kHeads, kRows, kDim});
    const Operand k = random_operand(random, {kBatches, kHeads, keys, kDim});
    const Operand v = random_operand(random, {kBatches, kHeads, keys, kDim});
    Operand full = random_operand(random, {kBatches, kHeads, kRows, keys}, 3);
    full.values[0] = -kInfinity;
    full.values[full.values.size() - 1] = -kInfinity;
    const Operand shared = random_operand(random, {1, 1, kRows, keys}, 3);
    const Operand row = random_operand(random, {keys}, 3);
    for (const Operand* mask :
         std::initializer_list<const Operand*>{&kOther, &full, &shared, &row}) {
      const double scale = mask == &full ? 0.31 : 1 / std::sqrt(8.0);
      Doubles want;
      for (uint32_t i = 0; i < kBatches * kHeads * kRows; ++i) {
        const float* bias = mask == &full     ? full.values.data() + size_t{i} * keys
                            : mask == &shared ? shared.values.data() + size_t{i % kRows} * keys
                            : mask == &row    ? row.values.data()
                                              : nullptr;
        const size_t at = size_t{i / kRows} * keys * kDim;
        const Doubles y = attend(q.values.data() + size_t{i} * kDim, k.values.data() + at,
                                 v.values.data() + at, kDim, keys, kDim, scale, bias);
        want.insert(want.end(), y.begin(), y.end());
      }
      std::vector<pte::GraphValue> others;
      if (mask == &kOther) {
        others.emplace_back(pte::Null{});
      }
      others.push_back(mask == &full ? pte::GraphValue(0.31) : pte::Null{});
      for (const AttentionRoute route : kAttentionRoutes) {
        CAPTURE(route_name(route));
        CAPTURE(keys);
        CHECK(elements_off(run(route, "et_vk.sdpa.default", {q, k, v, *mask, kOther}, others),
                           want) == 0);
      }
    }
  }
}

TEST_CASE("masks: a row of -inf gives zeros, one of the lowest float32 the mean") {
  std::mt19937 random(4);
  const Operand q = random_operand(random, {1, 1, 3, 4});
  const Operand k = random_operand(random, {1, 1, 70, 4});
  const Operand v = random_operand(random, {1, 1, 70, 4});
  Operand mask{{1, 1, 3, 70}, Floats(210, 0.0f)};
  std::fill_n(mask.values.begin(), 70, -kInfinity);
  std::fill_n(mask.values.begin() + 70, 70, std::numeric_limits<float>::lowest());
  Doubles want(12, 0);
  for (size_t i = 0; i < v.values.size(); ++i) {
    want[4 + i % 4] += static_cast<double>(v.values[i]) / 70;
  }
  const Doubles last = attend(q.values.data() + 8, k.values.data(), v.values.data(), 4, 70, 4, 0.5);
  std::copy(last.begin(), last.end(), want.begin() + 8);
  for (const AttentionRoute route : kAttentionRoutes) {
    CAPTURE(route_name(route));
    CHECK(elements_off(run(route, "et_vk.sdpa.default", {q, k, v, mask, kOther}, {pte::Null{}}),
                       want) == 0);
  }
}

TEST_CASE("masks by matrices: elements, rows of -inf, of the lowest float32 and of large scores") {
  std::mt19937 random(6);
  constexpr uint32_t kHeads = 2;
  constexpr uint32_t kRows = 70;
  constexpr uint32_t kKeys = 109;
  constexpr uint32_t kDim = 64;
  const Operand q = random_operand(random, {1, kHeads, kRows, kDim});
  const Operand k = random_operand(random, {1, kHeads, kKeys, kDim});
  const Operand v = random_operand(random, {1, kHeads, kKeys, kDim});
  Operand mask = random_operand(random, {1, kHeads, kRows, kKeys}, 9);
  const auto row = [&](size_t i) { return mask.values.data() + i * kKeys; };
  std::fill_n(row(3), kKeys, -kInfinity);
  std::fill_n(row(40), kKeys, std::numeric_limits<float>::lowest());
  std::fill_n(row(5), 64, -kInfinity);       // the first tiles, at any size of these
  std::fill_n(row(6) + 32, 64, -kInfinity);  // those in between
  std::fill_n(row(100), 50, std::numeric_limits<float>::lowest());
  Doubles want;
  for (uint32_t i = 0; i < kHeads * kRows; ++i) {
    const size_t at = size_t{i / kRows} * kKeys * kDim;
    const bool lowest = i == 40;  // all scores are the same in float32: the mean
    const Floats none(kKeys, 0.0f);
    const Floats zero(kDim, 0.0f);
    const Doubles y =
        attend(lowest ? zero.data() : q.values.data() + size_t{i} * kDim, k.values.data() + at,
               v.values.data() + at, kDim, kKeys, kDim, 0.125, lowest ? none.data() : row(i));
    want.insert(want.end(), y.begin(), y.end());
  }
  CHECK(elements_off(run(AttentionRoute::matrix, "et_vk.sdpa.default", {q, k, v, mask, kOther},
                         {pte::Null{}}),
                     want, 2e-3, 1e-2) == 0);
}

// custom_sdpa over given caches.
struct Given {
  uint32_t q_heads, kv_heads, dim, capacity;
};
struct GivenCase {
  Given given;
  uint32_t rows;
  uint32_t position;
  bool causal;
  uint32_t columns = 0;  // of a mask; 0: none
  bool by_head = false;  // the mask is not the same for all heads of q
};

void check_given(std::mt19937& random, const GivenCase& test) {
  const Given& given = test.given;
  const Operand q = random_operand(random, {1, test.rows, given.q_heads, given.dim});
  const Operand k = random_operand(random, {1, given.capacity, given.kv_heads, given.dim});
  const Operand v = random_operand(random, {1, given.capacity, given.kv_heads, given.dim});
  Operand mask;
  if (test.columns > 0) {
    mask = test.by_head ? random_operand(random, {1, given.q_heads, test.rows, test.columns}, 2)
                        : random_operand(random, {test.rows, test.columns}, 2);
    for (size_t i = 0; i < mask.values.size(); i += 3) {
      mask.values[i] = -kInfinity;
    }
  }
  const size_t width = size_t{given.kv_heads} * given.dim;
  Doubles want;
  for (uint32_t s = 0; s < test.rows; ++s) {
    const uint32_t keys = test.causal        ? test.position + s + 1
                          : test.columns > 0 ? test.columns
                                             : test.position + test.rows;
    for (uint32_t h = 0; h < given.q_heads; ++h) {
      const size_t head = size_t{h / (given.q_heads / given.kv_heads)} * given.dim;
      const uint32_t mask_head = test.by_head ? h : 0;
      const Doubles y = attend(
          q.values.data() + (size_t{s} * given.q_heads + h) * given.dim, k.values.data() + head,
          v.values.data() + head, width, keys, given.dim, 1 / std::sqrt(double{1} * given.dim),
          test.columns > 0 ? mask.values.data() + (size_t{mask_head} * test.rows + s) * test.columns
                           : nullptr);
      want.insert(want.end(), y.begin(), y.end());
    }
  }
  std::vector<pte::GraphValue> others = {int64_t{test.position}};
  if (test.columns == 0) {
    others.emplace_back(pte::Null{});
  }
  others.insert(others.end(), {int64_t{0}, test.causal, pte::Null{}});
  for (const AttentionRoute route : kAttentionRoutes) {
    CAPTURE(route_name(route));
    CAPTURE(test.rows);
    CAPTURE(test.position);
    CAPTURE(test.causal);
    CAPTURE(test.columns);
    CHECK(elements_off(run(route, "custom_sdpa.default",
                           {q, k, v, kOther, mask, kOther, kOther, kOther}, others),
                       want) == 0);
  }
}

TEST_CASE("operator custom_sdpa.default") {
  std::mt19937 random(5);
  const Given small{6, 2, 12, 90};
  for (const uint32_t rows : {1u, 3u, 40u}) {
    for (const uint32_t position : {0u, 7u, 50u}) {
      check_given(random, {small, rows, position, true});
      check_given(random, {small, rows, position, false});
    }
    check_given(random, {small, rows, 0, false, 90});
    check_given(random, {small, rows, 0, false, 61});
    check_given(random, {small, rows, 50, true, 90});
    check_given(random, {small, rows, 0, false, 90, true});
  }
}

TEST_CASE("custom_sdpa: more keys than one tile for each split, and up to every border") {
  std::mt19937 random(6);
  const Given many{64, 32, 4, 2300};  // 16 splits of up to three tiles
  for (const uint32_t position : {0u, 63u, 64u, 1023u, 1024u, 1025u, 2047u, 2297u}) {
    check_given(random, {many, 1, position, true});
    check_given(random, {many, 3, position, true});
  }
}

// value [1, S, 3, 5] into a cache of 9 rows that the run gives back.
struct Updater {
  explicit Updater(bool indexed, bool pinned = false) {
    GraphBuilder builder;
    const uint32_t value = builder.input({1, 9, 3, 5});
    const uint32_t cache = builder.constant("zeros", {1, 9, 3, 5});
    const uint32_t position =
        builder.add(pinned ? pte::GraphValue(int64_t{1}) : pte::GraphValue(pte::SymInt{}));
    std::vector<uint32_t> args = {value, cache, position};
    if (indexed) {
      args.push_back(builder.input({1, 9}, pte::GraphDtype::int32));
    }
    args.push_back(builder.tensor({1}));
    builder.call(indexed ? "update_cache_with_indices.default" : "update_cache.default", args);
    builder.outputs({cache});
    pte::Graph graph = builder.graph();
    if (!pinned) {
      graph.inputs.push_back(position);
    }
    session = must(graph::GraphSession::create(
        must(graph::GraphModel::load(attention_device(), std::move(graph), all_operators()))));
    is_indexed = indexed;
    is_pinned = pinned;
  }
  auto start(const Floats& value, int64_t position, const std::vector<int32_t>& indices = {})
      -> Result<std::unique_ptr<gpu::Pending<std::vector<graph::RunOutput>>>> {
    const auto rows = static_cast<uint32_t>(value.size() / 15);
    std::vector<graph::RunInput> inputs = {
        {{graph::Shape{1, rows, 3, 5}, 0}, std::as_bytes(std::span(value))}};
    if (is_indexed) {
      inputs.push_back({{graph::Shape{1, rows}, 0}, std::as_bytes(std::span(indices))});
    }
    if (!is_pinned) {
      inputs.push_back({{{}, position}, {}});
    }
    return session->run(inputs);
  }
  Floats update(const Floats& value, int64_t position, const std::vector<int32_t>& indices = {}) {
    return values_of<float>(must(start(value, position, indices)).at(0).bytes);
  }

  std::unique_ptr<graph::GraphSession> session;
  bool is_indexed = false;
  bool is_pinned = false;
};

TEST_CASE("update_cache: rows land at their positions and stay; overflow is refused") {
  std::mt19937 random(8);
  Updater updater(false);
  Floats want(9 * 15, 0.0f);
  for (const auto& [position, rows] : std::vector<std::pair<size_t, size_t>>{
           {0, 3}, {3, 1}, {4, 5}, {8, 1}, {2, 2}, {0, 9}, {7, 2}}) {
    const Floats value = random_floats(random, rows * 15);
    std::copy(value.begin(), value.end(),
              want.begin() + static_cast<std::ptrdiff_t>(position * 15));
    CHECK(updater.update(value, static_cast<int64_t>(position)) == want);
  }
  for (const int64_t position : {8, 9, -1, 1 << 30}) {
    expect_error(updater.start(Floats(30, 1.0f), position), ErrorCode::invalid_argument,
                 {"update_cache", std::to_string(position)});
  }
  const Floats value = random_floats(random, 15);
  std::copy(value.begin(), value.end(), want.begin() + 15);
  CHECK(updater.update(value, 1) == want);

  Updater pinned(false, true);  // control: the position matters
  CHECK(pinned.update(value, 5) != Updater(false).update(value, 5));
}

TEST_CASE("operator update_cache_with_indices.default") {
  std::mt19937 random(9);
  Updater updater(true);
  Floats want(9 * 15, 0.0f);
  for (const std::vector<int32_t>& indices :
       {std::vector<int32_t>{4, 0, 8}, {3}, {9, 2, -1, 5, 1 << 30}, {8, 7, 6, 5, 4, 3, 2, 1, 0}}) {
    const Floats value = random_floats(random, indices.size() * 15);
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] >= 0 && indices[i] < 9) {
        std::copy_n(value.begin() + static_cast<std::ptrdiff_t>(i * 15), 15,
                    want.begin() + indices[i] * 15);
      }
    }
    CHECK(updater.update(value, 0, indices) == want);
  }
}

}  // namespace
}  // namespace ptero::ops
