// SPDX-License-Identifier: BSD-3-Clause
#include "ops/common/adapter_routes.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"

namespace ptero::ops {
namespace {

using gpu::Feature;
using pte::GraphDtype;

graph::DeviceFacts adapter(bool software, gpu::FeatureSet features, uint32_t threads) {
  graph::DeviceFacts facts = OneOpFixture().device;
  facts.is_software = software;
  facts.features = features;
  facts.limits.max_invocations_per_workgroup = threads;
  facts.limits.max_workgroup_size_x = threads;
  if (features.contains(Feature::subgroup_matrix)) {
    facts.subgroup_min_size = facts.subgroup_max_size = 32;
    facts.matrix_shapes = {{gpu::MatrixType::f16, gpu::MatrixType::f32, 16, 16, 16}};
  }
  return facts;
}

TEST_CASE("adapter routes: each work has a row for every adapter, and each row is somebody's") {
  std::set<const AdapterRoute*> taken;
  for (const bool software : {false, true}) {
    for (const gpu::FeatureSet features :
         {gpu::FeatureSet{}, gpu::FeatureSet{Feature::subgroups},
          gpu::FeatureSet{Feature::shader_f16}, gpu::FeatureSet::all()}) {
      for (const uint32_t threads : {64, 256}) {
        for (size_t work = 0; work < kWorkCount; ++work) {
          const AdapterRoute& route =
              route_for(static_cast<Work>(work), adapter(software, features, threads));
          CHECK(static_cast<size_t>(route.work) == work);
          CHECK_FALSE(route.why.empty());
          taken.insert(&route);
        }
      }
    }
  }
  CHECK(taken.size() == adapter_routes().size());
}

// The kernels of an operator on an adapter, in their order.
std::string kernels(OneOpFixture& op, const graph::DeviceFacts& facts, std::string name,
                    std::vector<uint32_t> args) {
  op.device = facts;
  const auto plan = op.plan(std::move(name), std::move(args));
  REQUIRE(plan.ok());
  std::string names;
  for (size_t i = 0; i < (*plan)->dispatches(); ++i) {
    names += (i == 0 ? "" : " ") + std::string(dispatch_at(**plan, i).kernel.source->name);
  }
  return names;
}

std::string linear(const graph::DeviceFacts& facts, uint32_t rows,
                   GraphDtype type = GraphDtype::float32) {
  OneOpFixture op;
  const uint32_t x = op.input({rows, 256}, type);
  const uint32_t weight = op.input({512, 128}, GraphDtype::uint8);
  const uint32_t scales = op.input({8, 512}, type);
  return kernels(
      op, facts, "et_vk.linear_q4gsw.default",
      {x, weight, scales, op.value(int64_t{32}), op.null(), op.output({rows, 512}, type)});
}

TEST_CASE("adapter routes: planning does what the table says") {
  const auto route_of = [](Work work, const graph::DeviceFacts& facts) {
    return std::string(route_for(work, facts).route);
  };
  for (const bool software : {false, true}) {
    for (const gpu::FeatureSet features :
         {gpu::FeatureSet{}, gpu::FeatureSet{Feature::subgroups},
          gpu::FeatureSet{Feature::shader_f16}, gpu::FeatureSet::all()}) {
      for (const uint32_t threads : {64, 256}) {
        CAPTURE(software);
        CAPTURE(features.bits());
        CAPTURE(threads);
        const graph::DeviceFacts facts = adapter(software, features, threads);
        CHECK(linear(facts, 1) == "q4_" + route_of(Work::q4_few_rows, facts));
        const std::string many = route_of(Work::q4_many_rows, facts);
        CHECK(linear(facts, 40) == (many == "column" ? "q4_column_rows" : "q4_" + many));
        const std::string half = route_of(Work::q4_many_half_rows, facts);
        CHECK(linear(facts, 40, GraphDtype::float16) == (half == "column" ? "q4_column_rows"
                                                         : half == "steel_f16_packed"
                                                             ? "q4_steel_packed"
                                                             : "q4_" + half));
      }
    }
  }
}

TEST_CASE("adapter routes: matrices that multiply f16 into f32, for subgroups of one size") {
  using gpu::MatrixType;
  graph::DeviceFacts facts = adapter(false, gpu::FeatureSet::all(), 256);
  const auto route = [&] { return route_for(Work::q4_many_half_rows, facts).route; };
  CHECK(route() == "matrix");
  CHECK(half_matrix(facts) == &facts.matrix_shapes[0]);
  facts.subgroup_min_size = 16;  // they may have 16 lanes or 32
  CHECK(half_matrix(facts) == nullptr);
  CHECK(route() == "steel_f16_packed");
  facts.subgroup_min_size = 32;
  for (const Feature feature :
       {Feature::shader_f16, Feature::subgroups, Feature::subgroup_matrix}) {
    facts.features = gpu::FeatureSet::all();
    facts.features.erase(feature);
    CHECK(half_matrix(facts) == nullptr);
    CHECK(route() == (feature == Feature::shader_f16 ? "steel" : "steel_f16_packed"));
  }
  facts.features = gpu::FeatureSet::all();
  // As lavapipe and NVIDIA list them; the largest is taken.
  facts.matrix_shapes = {{MatrixType::f16, MatrixType::f16, 8, 8, 8},
                         {MatrixType::i8, MatrixType::i32, 16, 16, 32}};
  CHECK(half_matrix(facts) == nullptr);
  facts.matrix_shapes.push_back({MatrixType::f16, MatrixType::f32, 16, 8, 8});
  facts.matrix_shapes.push_back({MatrixType::f16, MatrixType::f32, 16, 16, 16});
  facts.matrix_shapes.push_back({MatrixType::f16, MatrixType::f32, 16, 8, 16});
  CHECK(half_matrix(facts) == &facts.matrix_shapes[3]);
  // No tile is made of these.
  facts.matrix_shapes = {{MatrixType::f16, MatrixType::f32, 12, 16, 16},
                         {MatrixType::f16, MatrixType::f32, 16, 16, 4},
                         {MatrixType::f16, MatrixType::f32, 32, 32, 8}};
  CHECK(half_matrix(facts) == nullptr);
}

}  // namespace
}  // namespace ptero::ops
