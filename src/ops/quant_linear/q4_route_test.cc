// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/quant_linear/q4_linear.h"

namespace ptero::ops {
namespace {

Q4Shape whole_words(uint64_t m, uint64_t n, uint64_t k, uint64_t group) {
  return {.m = m, .n = n, .k = k, .group = group, .row_bytes = k / 2};
}

TEST_CASE("q4 routes: a CPU takes columns, as wide as rows and groups allow") {
  OneOpFixture op;
  op.device.is_software = true;
  const auto route = [&](const Q4Shape& shape) { return choose_q4_route(shape, op.device); };
  CHECK(route(whole_words(1, 1536, 576, 32)) ==
        Q4Route{.kernel = Q4Kernel::column, .words = 4, .rows = 1, .columns = 64, .threads = 16});
  CHECK(route(whole_words(2, 64, 576, 32)) ==
        Q4Route{.kernel = Q4Kernel::column, .words = 4, .rows = 4, .columns = 64, .threads = 8});
  CHECK(route(whole_words(130, 64, 576, 32)).rows == 4);
  CHECK(route(whole_words(1, 64, 576, 16)).words == 2);  // a load lies in one group
  CHECK(route(whole_words(1, 64, 200, 40)).words == 1);
  CHECK(route(whole_words(1, 64, 48, 48)).words == 2);  // rows of six words
}

TEST_CASE("q4 routes: a GPU shares rows among threads, and stages tiles of many") {
  OneOpFixture op;
  op.device.features = {gpu::Feature::subgroups};
  const auto route = [&](const Q4Shape& shape) { return choose_q4_route(shape, op.device); };
  CHECK(route(whole_words(1, 2048, 2048, 32)) == Q4Route{.kernel = Q4Kernel::gemv,
                                                         .words = 2,
                                                         .rows = 1,
                                                         .columns = 2,
                                                         .threads = 128,
                                                         .subgroups = true});
  CHECK(route(whole_words(1, 2048, 8192, 32)) == Q4Route{.kernel = Q4Kernel::gemv,
                                                         .words = 1,
                                                         .rows = 1,
                                                         .columns = 4,
                                                         .threads = 128,
                                                         .subgroups = true});
  for (const uint64_t n : {4096, 16384, 128256}) {
    CHECK(route(whole_words(1, n, 2048, 32)) == Q4Route{.kernel = Q4Kernel::gemv,
                                                        .words = 2,
                                                        .rows = 1,
                                                        .columns = 8,
                                                        .threads = 64,
                                                        .subgroups = true});
  }
  CHECK(route(whole_words(2, 16384, 2048, 32)).columns == 4);
  CHECK(route(whole_words(1, 576, 576, 32)).threads == 64);  // 36 loads a row
  CHECK(route(whole_words(16, 2048, 2048, 32)).kernel == Q4Kernel::gemv);
  CHECK(route(whole_words(17, 2048, 2048, 32)) ==
        Q4Route{.kernel = Q4Kernel::steel, .rows = 64, .columns = 64, .threads = 256});

  op.device.features = {};
  op.device.limits.max_invocations_per_workgroup = 64;
  CHECK_FALSE(route(whole_words(1, 2048, 2048, 32)).subgroups);
  CHECK(route(whole_words(1, 2048, 2048, 32)).threads == 64);
  CHECK(route(whole_words(17, 2048, 2048, 32)) ==
        Q4Route{.kernel = Q4Kernel::tile, .rows = 32, .columns = 32, .threads = 64});
}

TEST_CASE("q4 routes: products in f16 where the device has it and the operator takes them") {
  OneOpFixture op;
  op.device.features = {gpu::Feature::shader_f16};
  Q4Shape shape = whole_words(17, 2048, 2048, 8);
  const auto kernel = [&] { return choose_q4_route(shape, op.device).kernel; };
  CHECK(kernel() == Q4Kernel::steel);
  shape.may_halve = true;
  CHECK(kernel() == Q4Kernel::steel);
  shape.half = true;
  CHECK(kernel() == Q4Kernel::steel_f16_packed);
  op.device.limits.max_workgroup_storage_size = 8192;
  CHECK(kernel() == Q4Kernel::tile);
  op.device.limits.max_workgroup_storage_size = 16384;
  op.device.limits.max_workgroup_size_x = 128;
  CHECK(kernel() == Q4Kernel::tile);
  op.device.limits.max_workgroup_size_x = 256;
  op.device.features = {};
  CHECK(kernel() == Q4Kernel::steel);
  op.device.is_software = true;
  CHECK(kernel() == Q4Kernel::column);
}

TEST_CASE("q4 routes: a name asks for a kernel with many rows, and gives way where it must") {
  OneOpFixture op;
  op.device.features = {gpu::Feature::shader_f16};
  Q4Shape shape = whole_words(17, 64, 64, 32);
  shape.may_halve = true;
  const auto kernel = [&](std::string_view name) {
    op.device.options.q4_gemm = name;
    return choose_q4_route(shape, op.device).kernel;
  };
  for (const bool software : {false, true}) {
    op.device.is_software = software;
    for (const Q4Kernel named :
         {Q4Kernel::any, Q4Kernel::column, Q4Kernel::tile, Q4Kernel::steel, Q4Kernel::steel_f16,
          Q4Kernel::steel_f16_packed, Q4Kernel::steel_f16_accumulate}) {
      CHECK(kernel(name_of(named)) == named);
    }
  }
  op.device.is_software = false;
  op.device.features = {};
  for (const char* half : {"steel_f16", "steel_f16_packed", "steel_f16_accumulate"}) {
    CHECK(kernel(half) == Q4Kernel::steel);
  }
  op.device.limits.max_invocations_per_workgroup = 128;
  CHECK(kernel("steel") == Q4Kernel::tile);
  shape.m = 16;
  CHECK(kernel("tile") == Q4Kernel::gemv);  // few rows have no such choice
  shape.m = 17;
  shape.row_bytes = 33;
  CHECK(kernel("tile") == Q4Kernel::any);
}

graph::DeviceFacts with_matrices(uint32_t lanes) {
  graph::DeviceFacts facts = OneOpFixture().device;
  facts.features = gpu::FeatureSet::all();
  facts.subgroup_min_size = facts.subgroup_max_size = lanes;
  facts.limits.max_workgroup_storage_size = 49152;
  facts.matrix_shapes = {{gpu::MatrixType::f16, gpu::MatrixType::f32, 16, 16, 16}};
  return facts;
}

TEST_CASE("q4 routes: matrix units for x in f16, and for others where products may be in f16") {
  graph::DeviceFacts device = with_matrices(32);
  Q4Shape shape = whole_words(127, 2048, 2048, 32);
  const auto kernel = [&] { return choose_q4_route(shape, device).kernel; };
  CHECK(kernel() == Q4Kernel::steel);
  shape.may_halve = true;
  CHECK(kernel() == Q4Kernel::steel);
  device.options.enable_f16_gemm = true;
  CHECK(kernel() == Q4Kernel::matrix);
  shape.may_halve = false;  // as linear_qcs4w and 8da4w
  CHECK(kernel() == Q4Kernel::steel);
  shape.may_halve = true;
  shape.m = 16;
  CHECK(kernel() == Q4Kernel::gemv);
  shape.m = 17;
  shape.half = true;
  for (const std::optional<bool> asked : {std::optional<bool>(), {false}, {true}}) {
    device.options.enable_f16_gemm = asked;
    CHECK(kernel() == Q4Kernel::matrix);
  }
  device.options.enable_f16_accumulate_gemm = true;
  CHECK(kernel() == Q4Kernel::steel_f16_accumulate);
  device.options = {};
  device.is_software = true;
  device.options.enable_f16_gemm = true;
  CHECK(kernel() == Q4Kernel::column);
  device.options.q4_gemm = "matrix";
  CHECK(kernel() == Q4Kernel::matrix);
  device.options = {};
  device.is_software = false;
  device.matrix_shapes.clear();
  CHECK(kernel() == Q4Kernel::steel_f16_packed);
  shape.half = false;
  device.options.enable_f16_gemm = true;
  CHECK(kernel() == Q4Kernel::steel);
  device.options = {};
  device.options.q4_gemm = "matrix";
  CHECK(kernel() == Q4Kernel::steel);
}

TEST_CASE("q4 routes: tiles of matrices fit the device and the work") {
  Q4Shape shape = whole_words(508, 8192, 2048, 32);
  shape.may_halve = true;
  graph::DeviceFacts device = with_matrices(32);
  device.options.q4_gemm = "matrix";
  const auto route = [&] { return choose_q4_route(shape, device); };
  const Q4Route large{.kernel = Q4Kernel::matrix,
                      .words = 2,
                      .rows = 128,
                      .columns = 128,
                      .threads = 256,
                      .matrices = {16, 16, 16, 4, 1, 32}};
  const Q4Route medium{.kernel = Q4Kernel::matrix,
                       .words = 4,
                       .rows = 64,
                       .columns = 64,
                       .threads = 128,
                       .matrices = {16, 16, 16, 4, 2, 32}};
  const Q4Route small{.kernel = Q4Kernel::matrix,
                      .words = 4,
                      .rows = 32,
                      .columns = 64,
                      .threads = 128,
                      .matrices = {16, 16, 16, 2, 2, 32}};
  CHECK(route() == large);
  shape.n = 2048;  // too few tiles of that size
  CHECK(route() == medium);
  shape.m = 127;
  CHECK(route() == small);
  shape.n = 16384;
  CHECK(route() == large);
  device.limits.max_workgroup_storage_size = 16384;
  CHECK(route() == large);
  device.limits.max_workgroup_storage_size = 16383;
  CHECK(route() == small);
  device.limits.max_workgroup_storage_size = 12287;
  CHECK(route().kernel == Q4Kernel::steel);
  device = with_matrices(32);
  device.options.q4_gemm = "matrix";
  shape.m = 32;  // half of a larger tile
  CHECK(route() == small);
  shape.m = 64;
  CHECK(route() == medium);
  shape.m = 65;
  CHECK(route() == large);
  shape.n = 8192;
  CHECK(route() == medium);
  shape.m = 508;
  device = with_matrices(64);
  device.options.q4_gemm = "matrix";
  CHECK(route().rows == 64);
  CHECK(route().threads == 256);
  CHECK(route().words == 2);
  device.limits.max_invocations_per_workgroup = 512;
  device.limits.max_workgroup_size_x = 512;
  CHECK(route().rows == 128);
  device = with_matrices(8);
  device.options.q4_gemm = "matrix";
  device.matrix_shapes[0] = {gpu::MatrixType::f16, gpu::MatrixType::f32, 8, 8, 8};
  CHECK(route() == Q4Route{.kernel = Q4Kernel::matrix,
                           .words = 4,
                           .rows = 64,
                           .columns = 64,
                           .threads = 64,
                           .matrices = {8, 8, 8, 4, 1, 8}});
  shape.group = 8;
  CHECK(route().words == 1);
  device.limits.max_invocations_per_workgroup = 128;
  CHECK(route().kernel == Q4Kernel::tile);
}

TEST_CASE("q4 routes: sums in f16 only for those who ask for them") {
  OneOpFixture op;
  op.device.features = {gpu::Feature::shader_f16, gpu::Feature::subgroups,
                        gpu::Feature::subgroup_matrix, gpu::Feature::packed_dot};
  const auto kernels = [&](const Q4Shape& shape) {
    return choose_q4_route(shape, op.device).kernel;
  };
  size_t asked = 0;
  for (const bool software : {false, true}) {
    op.device.is_software = software;
    for (const uint64_t m : {1, 2, 16, 17, 64, 127, 128, 129, 508, 511, 512, 513, 2048}) {
      for (const uint64_t n : {512, 2048, 3072, 8192, 128256}) {
        for (const uint64_t k : {64, 2048, 8192}) {
          for (const uint64_t group : {8, 16, 32, 64, 128, 256}) {
            Q4Shape shape = whole_words(m, n, k, std::min(group, k));
            shape.may_halve = true;
            op.device.options = {};
            CHECK(kernels(shape) != Q4Kernel::steel_f16_accumulate);
            op.device.options.enable_f16_accumulate_gemm = true;
            const bool accumulates = kernels(shape) == Q4Kernel::steel_f16_accumulate;
            CHECK(accumulates == (m > 16 && !software));
            asked += accumulates ? 1 : 0;
            shape.may_halve = false;
            CHECK(kernels(shape) != Q4Kernel::steel_f16_accumulate);
          }
        }
      }
    }
  }
  CHECK(asked > 0);
}

TEST_CASE("q4 routes: what is not made of whole words goes one element at a time") {
  OneOpFixture op;
  for (const bool software : {false, true}) {
    op.device.is_software = software;
    const auto kernel = [&](const Q4Shape& shape) {
      return choose_q4_route(shape, op.device).kernel;
    };
    CHECK(kernel({.m = 1, .n = 9, .k = 20, .group = 20, .row_bytes = 12}) == Q4Kernel::any);
    CHECK(kernel({.m = 1, .n = 9, .k = 24, .group = 12, .row_bytes = 12}) == Q4Kernel::any);
    CHECK(kernel({.m = 1, .n = 9, .k = 24, .group = 24, .row_bytes = 13}) == Q4Kernel::any);
    CHECK(kernel({.m = 1, .n = 9, .k = 24, .group = 8, .row_bytes = 16}) != Q4Kernel::any);
  }
}

}  // namespace
}  // namespace ptero::ops
