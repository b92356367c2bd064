// SPDX-License-Identifier: BSD-3-Clause
// How fast attention over KV caches runs on this machine, by every route: time of a layer (the
// cache update included) in a chain of them, each with caches of its own, the median of several
// runs, and the least time that the process spent on it on all cores.
// Usage: attention_bench [QxKxDxCAPACITYxPOSITIONxROWS ...], heads of q, heads of k, elements of a
// head, with PTERO_ADAPTER to choose an adapter.
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/bench.h"
#include "gpu/device.h"
#include "gpu/native/wait.h"
#include "graph/model.h"
#include "graph/session.h"
#include "ops/all_operators.h"
#include "pte/graph.h"

namespace {

using namespace ptero;

struct Case {
  std::array<uint32_t, 6> numbers = {};

  uint32_t q_heads() const { return numbers[0]; }
  uint32_t kv_heads() const { return numbers[1]; }
  uint32_t dim() const { return numbers[2]; }
  uint32_t capacity() const { return numbers[3]; }
  uint32_t position() const { return numbers[4]; }
  uint32_t rows() const { return numbers[5]; }
};

Result<Case> parse_case(std::string_view text) {
  Case made;
  const char* at = text.data();
  const char* end = at + text.size();
  for (size_t i = 0; i < made.numbers.size(); ++i) {
    const auto parsed = std::from_chars(at, end, made.numbers[i]);
    const bool last = i + 1 == made.numbers.size();
    PTERO_REJECT_IF(parsed.ec != std::errc() || (parsed.ptr == end) != last, invalid_argument,
                    "Case ({}) is not of the form QxKxDxCAPACITYxPOSITIONxROWS.", text);
    at = parsed.ptr + 1;
  }
  return made;
}

// A chain of layers, each taking the output of the one before as its queries.
pte::Graph make_graph(const Case& test, uint32_t layers) {
  pte::Graph graph;
  const auto add = [&](pte::GraphValue value) {
    graph.values.push_back(std::move(value));
    return static_cast<uint32_t>(graph.values.size() - 1);
  };
  const auto tensor = [&](uint32_t rows, uint32_t heads) {
    pte::GraphTensor made;
    made.dims = {1, rows, heads, test.dim()};
    return add(std::move(made));
  };
  uint32_t q = tensor(test.rows(), test.q_heads());
  const uint32_t k = tensor(test.rows(), test.kv_heads());
  const uint32_t v = tensor(test.rows(), test.kv_heads());
  const uint32_t position = add(pte::SymInt{});
  graph.inputs = {q, k, v, position};
  const uint32_t null = add(pte::Null{});
  const uint32_t yes = add(true);
  for (uint32_t i = 0; i < layers; ++i) {
    const uint32_t k_cache = tensor(test.capacity(), test.kv_heads());
    const uint32_t v_cache = tensor(test.capacity(), test.kv_heads());
    const uint32_t y = tensor(test.rows(), test.q_heads());
    graph.chain.push_back({i,
                           "sdpa_with_kv_cache.default",
                           {q, k, v, k_cache, v_cache, position, null, null, null, yes, null, y}});
    q = y;
  }
  graph.outputs = {q};
  return graph;
}

Result<bench::Times> time_route(gpu::Device& device, const Case& test, const char* route,
                                uint32_t layers) {
  constexpr int kRuns = 11;
  constexpr std::chrono::milliseconds kWarmUp{200};
  graph::PlanOptions options;
  options.sdpa_route = route;
  PTERO_ASSIGN_OR_RETURN(const auto model,
                         gpu::wait_for(graph::GraphModel::load(device, make_graph(test, layers),
                                                               ops::all_operators(), {}, options)));
  PTERO_ASSIGN_OR_RETURN(const auto session, graph::GraphSession::create(model));
  const std::vector<float> q(size_t{test.rows()} * test.q_heads() * test.dim(), 0.5f);
  const auto kv = std::span(q).first(size_t{test.rows()} * test.kv_heads() * test.dim());
  const graph::Shape q_shape{1, test.rows(), test.q_heads(), test.dim()};
  const graph::Shape kv_shape{1, test.rows(), test.kv_heads(), test.dim()};
  const std::vector<graph::RunInput> inputs = {
      {{q_shape, 0}, std::as_bytes(std::span(q))},
      {{kv_shape, 0}, std::as_bytes(kv)},
      {{kv_shape, 0}, std::as_bytes(kv)},
      {{{}, test.position()}, {}},
  };
  return bench::time_runs(
      kRuns,
      [&]() -> Status {
        PTERO_RETURN_IF_ERROR(gpu::wait_for(session->run(inputs)));
        return ok_status();
      },
      kWarmUp);
}

Status measure(gpu::Device& device, const Case& test) {
  constexpr uint32_t kLayers = 16;
  constexpr const char* kNames[] = {"auto", "rows", "split", "tiles", "matrix", "materialized"};
  const double keys = test.position() + test.rows();
  for (const char* route : kNames) {
    PTERO_ASSIGN_OR_RETURN(const bench::Times one, time_route(device, test, route, 1));
    PTERO_ASSIGN_OR_RETURN(const bench::Times many, time_route(device, test, route, 1 + kLayers));
    const double wall = (many.wall - one.wall) / kLayers;
    const double bytes = 2 * keys * test.kv_heads() * test.dim() * 4;
    const double products = 4.0 * (test.position() + 0.5 * (test.rows() + 1)) * test.rows() *
                            test.q_heads() * test.dim();
    fmt::print(
        "| {:>3} x {:>3} x {:>3}, {:>5} at {:>5} | {:<12} | {:>9.1f} | {:>9.1f} | {:>7.1f} | "
        "{:>8.1f} |\n",
        test.q_heads(), test.kv_heads(), test.dim(), test.rows(), test.position(), route, wall,
        (many.processor - one.processor) / kLayers, bytes / wall / 1e3, products / wall / 1e3);
    std::fflush(stdout);
  }
  return ok_status();
}

Status run(std::vector<std::string> arguments) {
  if (arguments.empty()) {
    arguments = {"9x3x64x512x255x1", "9x3x64x512x0x127", "32x8x64x2048x511x1",
                 "32x8x64x2048x0x512"};
  }
  PTERO_ASSIGN_OR_RETURN(gpu::Device device, bench::open_device({.robustness = false}));
  fmt::print("Attention over KV caches on {} ({})\n\n", device.adapter().name,
             device.adapter().driver);
  fmt::print("| {:<30} | {:<12} | {:>9} | {:>9} | {:>7} | {:>8} |\n", "q x k x elements, rows at",
             "route", "us", "CPU us", "GB/s", "GFLOP/s");
  for (const std::string& argument : arguments) {
    PTERO_ASSIGN_OR_RETURN(const Case test, parse_case(argument));
    PTERO_RETURN_IF_ERROR(measure(device, test));
  }
  return ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  return bench::finish("attention_bench", run({argv + 1, argv + argc}));
}
