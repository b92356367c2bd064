// SPDX-License-Identifier: BSD-3-Clause
// Rotary embeddings on a device, against double: the three layouts, live rows and positions.
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "gpu/testing/test_device.h"
#include "graph/model.h"
#include "graph/session.h"
#include "graph/testing/graph_builder.h"
#include "ops/all_operators.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using graph::testing::Dims;
using graph::testing::GraphBuilder;

constexpr uint32_t kQHeads = 3;
constexpr uint32_t kKHeads = 2;
constexpr uint32_t kDim = 12;
constexpr uint32_t kMaxRows = 6;
constexpr uint32_t kPositions = 20;

gpu::Device& shared_device() {
  static gpu::Device device = open_device();
  return device;
}

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Floats random_floats(std::mt19937& random, size_t count) {
  std::uniform_real_distribution<float> values(-1, 1);
  Floats made(count);
  for (float& value : made) {
    value = values(random);
  }
  return made;
}

// A session of one call, and runs of it.
class Rotator {
 public:
  Rotator(const std::string& name, const std::vector<Dims>& inputs, bool positioned,
          const std::vector<Dims>& outputs) {
    GraphBuilder builder;
    std::vector<uint32_t> args;
    for (const Dims& dims : inputs) {
      args.push_back(builder.input(dims));
    }
    if (positioned) {
      args.push_back(builder.add(pte::SymInt{}));
    }
    std::vector<uint32_t> results;
    for (const Dims& dims : outputs) {
      results.push_back(builder.tensor(dims));
    }
    builder.outputs(results);
    const uint32_t position = args.back();
    args.push_back(results.size() == 1 ? results[0] : builder.list(results));
    builder.call(name, args);
    pte::Graph graph = builder.graph();
    if (positioned) {
      graph.inputs.push_back(position);
    }
    positioned_ = positioned;
    session_ = must(graph::GraphSession::create(
        must(graph::GraphModel::load(shared_device(), std::move(graph), all_operators())),
        {.poison_activations = true}));
  }

  using Operands = std::vector<std::pair<graph::Shape, const Floats*>>;
  auto start(const Operands& operands, int64_t position = 0)
      -> Result<std::unique_ptr<gpu::Pending<std::vector<graph::RunOutput>>>> {
    std::vector<graph::RunInput> inputs;
    for (const auto& [shape, values] : operands) {
      inputs.push_back({{shape, 0}, std::as_bytes(std::span(*values))});
    }
    if (positioned_) {
      inputs.push_back({{{}, position}, {}});
    }
    return session_->run(inputs);
  }
  std::vector<Floats> run(const Operands& operands, int64_t position = 0) {
    std::vector<Floats> results;
    for (const graph::RunOutput& output : must(start(operands, position))) {
      results.push_back(values_of<float>(output.bytes));
    }
    return results;
  }

 private:
  bool positioned_ = false;
  std::unique_ptr<graph::GraphSession> session_;
};

// Turns elements a and b of a head by the angle of (cosine, sine) pairs.
void rotate(Doubles& x, size_t a, size_t b, double cos_a, double sin_a, double cos_b,
            double sin_b) {
  const double first = x[a];
  const double second = x[b];
  x[a] = first * cos_a - second * sin_a;
  x[b] = second * cos_b + first * sin_b;
}
void rotate(Doubles& x, size_t a, size_t b, double cosine, double sine) {
  rotate(x, a, b, cosine, sine, cosine, sine);
}

TEST_CASE("apply_rotary_emb: pairs of neighbours, whole heads and parts, live rows and batches") {
  for (const uint32_t pairs : {kDim / 2, kDim / 4}) {
    std::mt19937 random(pairs);
    Rotator rotator("et_vk.apply_rotary_emb.default",
                    {{2, kMaxRows, kQHeads, kDim},
                     {2, kMaxRows, kKHeads, kDim},
                     {kMaxRows, pairs},
                     {kMaxRows, pairs}},
                    false, {{2, kMaxRows, kQHeads, kDim}, {2, kMaxRows, kKHeads, kDim}});
    for (const uint32_t rows : {6u, 1u, 4u, 6u}) {
      const Floats cosines = random_floats(random, size_t{rows} * pairs);
      const Floats sines = random_floats(random, size_t{rows} * pairs);
      const Floats q = random_floats(random, size_t{2} * rows * kQHeads * kDim);
      const Floats k = random_floats(random, size_t{2} * rows * kKHeads * kDim);
      const auto want = [&](const Floats& x, uint32_t heads) {
        Doubles y(x.begin(), x.end());
        for (size_t head = 0; head < x.size() / kDim; ++head) {
          const size_t row = head / heads % rows;
          for (size_t i = 0; i < pairs; ++i) {
            rotate(y, head * kDim + 2 * i, head * kDim + 2 * i + 1, cosines[row * pairs + i],
                   sines[row * pairs + i]);
          }
        }
        return y;
      };
      const auto got = rotator.run({{{2, rows, kQHeads, kDim}, &q},
                                    {{2, rows, kKHeads, kDim}, &k},
                                    {{rows, pairs}, &cosines},
                                    {{rows, pairs}, &sines}});
      check_near(got[0], want(q, kQHeads), 1e-6);
      check_near(got[1], want(k, kKHeads), 1e-6);
    }
  }
}

TEST_CASE("apply_rotary_emb_hf: pairs of halves at a live position, whole heads and parts") {
  for (const uint32_t rotated : {kDim, kDim - 4}) {
    std::mt19937 random(rotated);
    Rotator rotator("et_vk.apply_rotary_emb_hf.default",
                    {{1, kMaxRows, kQHeads, kDim},
                     {1, kMaxRows, kKHeads, kDim},
                     {kPositions, rotated},
                     {kPositions, rotated}},
                    true, {{1, kMaxRows, kQHeads, kDim}, {1, kMaxRows, kKHeads, kDim}});
    const Floats cosines = random_floats(random, size_t{kPositions} * rotated);
    const Floats sines = random_floats(random, size_t{kPositions} * rotated);
    const auto operands = [&](uint32_t rows, const Floats& q, const Floats& k) {
      return Rotator::Operands{{{1, rows, kQHeads, kDim}, &q},
                               {{1, rows, kKHeads, kDim}, &k},
                               {{kPositions, rotated}, &cosines},
                               {{kPositions, rotated}, &sines}};
    };
    for (const auto& [rows, position] : std::vector<std::pair<uint32_t, uint32_t>>{
             {6, 0}, {1, 6}, {1, 19}, {3, 7}, {6, 14}, {1, 0}}) {
      const Floats q = random_floats(random, size_t{rows} * kQHeads * kDim);
      const Floats k = random_floats(random, size_t{rows} * kKHeads * kDim);
      const auto want = [&](const Floats& x, uint32_t heads, uint32_t first) {
        Doubles y(x.begin(), x.end());
        const size_t half = rotated / 2;
        for (size_t head = 0; head < x.size() / kDim; ++head) {
          const size_t at = (head / heads + first) * rotated;
          for (size_t i = 0; i < half; ++i) {
            rotate(y, head * kDim + i, head * kDim + i + half, cosines[at + i], sines[at + i],
                   cosines[at + i + half], sines[at + i + half]);
          }
        }
        return y;
      };
      const auto got = rotator.run(operands(rows, q, k), position);
      check_near(got[0], want(q, kQHeads, position), 1e-6);
      check_near(got[1], want(k, kKHeads, position), 1e-6);
      // Control: another position gives other numbers.
      const Doubles other = want(q, kQHeads, (position + 1) % (kPositions - rows));
      size_t differ = 0;
      for (size_t i = 0; i < other.size(); ++i) {
        differ += std::abs(static_cast<double>(got[0][i]) - other[i]) > 1e-3 ? 1 : 0;
      }
      CHECK(differ > other.size() / 2);
    }
    const Floats q(size_t{3} * kQHeads * kDim, 1.0f);
    const Floats k(size_t{3} * kKHeads * kDim, 1.0f);
    expect_error(rotator.start(operands(3, q, k), 18), ErrorCode::invalid_argument,
                 {"18", "apply_rotary_emb_hf"});
  }
}

TEST_CASE("apply_rotary_emb_interleaved: cosines and sines side by side, live rows") {
  std::mt19937 random(11);
  Rotator rotator("et_vk.apply_rotary_emb_interleaved.default",
                  {{2, kMaxRows, kDim}, {kMaxRows, kDim}}, false, {{2, kMaxRows, kDim}});
  for (const uint32_t rows : {6u, 1u, 5u}) {
    const Floats x = random_floats(random, size_t{2} * rows * kDim);
    const Floats freqs = random_floats(random, size_t{rows} * kDim);
    Doubles want(x.begin(), x.end());
    for (size_t i = 0; i < x.size(); i += 2) {
      const size_t at = i % freqs.size();
      rotate(want, i, i + 1, freqs[at], freqs[at + 1]);
    }
    const auto got = rotator.run({{{2, rows, kDim}, &x}, {{rows, kDim}, &freqs}});
    check_near(got[0], want, 1e-6);
  }
}

}  // namespace
}  // namespace ptero::ops
