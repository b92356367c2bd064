// SPDX-License-Identifier: BSD-3-Clause
// Converted models on a device against a float64 evaluation of the GGUF file's own weights: a
// prompt in pieces, then one token a run.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "convert/convert.h"
#include "convert/test_model.h"
#include "gguf/reader.h"
#include "gpu/testing/test_device.h"
#include "graph/method.h"
#include "ops/all_operators.h"
#include "ops/host_operators.h"
#include "passes/passes.h"
#include "pte/data_map.h"
#include "pte/program_reader.h"
#include "pte/program_writer.h"

namespace ptero::convert {
namespace {

using namespace gpu::testing;
using graph::HostTensor;
using graph::MethodModel;
using graph::MethodSession;
using graph::Shape;
using test::TensorType;
using test::TestModel;

gpu::Device& shared_device() {
  static gpu::Device device = open_device();
  return device;
}

HostTensor longs(Shape shape, const std::vector<int64_t>& values) {
  HostTensor tensor = graph::make_host_tensor(pte::ScalarType::int64, std::move(shape));
  std::copy(values.begin(), values.end(), graph::elements<int64_t>(tensor).begin());
  return tensor;
}

// Largest distance of a logit from what the model means, in units of the largest logit.
double distance(const HostTensor& logits, const std::vector<double>& expected) {
  const auto found = graph::elements<float>(logits);
  REQUIRE(found.size() == expected.size());
  double largest = 0;
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    const double error = std::fabs(static_cast<double>(found[i]) - expected[i]);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  REQUIRE(largest > 0.5);
  return worst / largest;
}

void check_model(TestModel model, const ConvertOptions& options, double tolerance,
                 uint32_t context_at_load = 0) {
  model.make();
  const gguf::File file = must(gguf::read_gguf(model.file.range()));
  const ConvertedProgram converted = must(convert_gguf(file, options));
  // Through the bytes of a file, as a user's program goes.
  const ByteSourcePtr bytes = must(pte::assemble_program(converted.program));
  const pte::Program program = must(pte::read_program(ByteRange::whole(bytes)));
  pte::DataMap data;
  REQUIRE(data.add(program).ok());
  const auto method = must(gpu::wait_for(MethodModel::load(
      shared_device(), program, data, "forward", ops::all_operators(), ops::host_operators(),
      passes::standard_passes(), {.context = context_at_load})));
  const auto session = must(MethodSession::create(method));
  const std::vector<int64_t> tokens = {3, 41, 7, 7, 19, 0, 49, 23, 11};
  size_t at = 0;
  for (const size_t count : {5, 2, 1, 1}) {
    const auto first = tokens.begin() + static_cast<ptrdiff_t>(at);
    const std::vector<int64_t> piece(first, first + static_cast<ptrdiff_t>(count));
    const auto outputs =
        must(gpu::wait_for(session->run({longs(Shape{1, static_cast<uint32_t>(count)}, piece),
                                         longs(Shape{1}, {static_cast<int64_t>(at)})})));
    at += count;
    CAPTURE(at);
    const std::vector<int64_t> so_far(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(at));
    REQUIRE(outputs.size() == 1);
    CHECK(distance(outputs[0], model.answer(so_far)) < tolerance);
  }
}

TEST_CASE("llama, Q4_0: no rounding of the weights at all") {
  check_model({}, {.max_seq = 8}, 1e-5);
}

TEST_CASE("llama, a head of its own, factors of the frequencies, wide heads") {
  TestModel model;
  model.tied = false;
  model.rope_factors = true;
  model.head_dim = 32;
  model.rope_base = 500000;
  check_model(std::move(model), {.context = 16, .max_seq = 8}, 1e-5);
}

TEST_CASE("qwen2: halves turn, biases") {
  TestModel model;
  model.architecture = "qwen2";
  model.biases = true;
  check_model(std::move(model), {.max_seq = 8}, 1e-5);
}

TEST_CASE("qwen3: halves turn, norms of heads") {
  TestModel model;
  model.architecture = "qwen3";
  model.head_norms = true;
  model.head_dim = 32;
  model.tied = false;
  check_model(std::move(model), {.max_seq = 8}, 1e-5);
}

TEST_CASE("f32 weights") {
  TestModel model;
  model.architecture = "qwen2";
  model.biases = true;
  model.type = TensorType::f32;
  check_model(std::move(model), {.max_seq = 8, .weights = WeightFormat::f32}, 1e-5);
}

TEST_CASE("f16 weights") {
  TestModel model;
  model.type = TensorType::f16;
  check_model(std::move(model), {.max_seq = 8, .weights = WeightFormat::f16}, 0.02);
}

TEST_CASE("a head in float32 beside 4-bit weights") {
  check_model({}, {.max_seq = 8, .float_head = true}, 1e-5);
}

TEST_CASE("another context at load: positions that the file has no rows for, and fewer") {
  for (const uint32_t context : {9, 40}) {
    CAPTURE(context);
    const uint32_t in_file = context == 9 ? 64 : 8;
    TestModel factors;
    factors.rope_factors = true;
    check_model(std::move(factors), {.context = in_file, .max_seq = 8}, 1e-5, context);
    TestModel halves;
    halves.architecture = "qwen2";
    check_model(std::move(halves), {.context = in_file, .max_seq = 8}, 1e-5, context);
    TestModel f16;
    f16.type = TensorType::f16;
    check_model(std::move(f16), {.context = in_file, .max_seq = 8, .weights = WeightFormat::f16},
                0.02, context);
  }
}

TEST_CASE("an odd vocabulary") {
  TestModel model;
  model.vocabulary = 51;
  check_model(std::move(model), {.max_seq = 8}, 1e-5);
}

}  // namespace
}  // namespace ptero::convert
