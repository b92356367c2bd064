// SPDX-License-Identifier: BSD-3-Clause
// Wrong use is refused with a sentence that names the thing, and the device stays usable.
#include <doctest/doctest.h>

#include "gpu/selfcheck/check_add.wgsl.h"
#include "gpu/selfcheck/check_chain.wgsl.h"
#include "gpu/selfcheck/check_half.wgsl.h"
#include "gpu/selfcheck/check_subgroups.wgsl.h"
#include "gpu/testing/in_place.wgsl.h"
#include "gpu/testing/test_device.h"
#include "gpu/testing/two_outputs.wgsl.h"

namespace ptero::gpu {
namespace {

using namespace testing;
using namespace wgsl;
using Bindings = std::vector<Binding>;

constexpr ErrorCode kInvalid = ErrorCode::invalid_argument;

void check_usable(Device& device, Where where = Where::current()) {
  must(device.check(), where);
  check_near(must(run_workload(device), where), workload_golden(), 0, where);
}

TEST_CASE("refused: buffers of no size, or larger than the adapter's or the capped limit") {
  Device device = open_device();
  const uint64_t limit = device.limits().max_buffer_size;
  const auto make = [&](Device& on, uint64_t bytes) {
    return on.create_buffer("big", bytes, MemoryKind::weights);
  };
  expect_error(make(device, 0), kInvalid, {"(0 bytes)", "(big)"});
  const uint64_t above = (limit / 4 + 1) * 4;
  expect_error(make(device, above), ErrorCode::out_of_memory,
               {"(big)", fmt::format("({} bytes)", above), fmt::format("({} bytes)", limit)});
  expect_error(make(device, UINT64_MAX), ErrorCode::out_of_memory, {"(big)"});
  CHECK(device.stats().bytes_live == 0);
  CHECK(device.stats().buffers_created == 0);
  check_usable(device);

  DeviceOptions options;
  options.caps.max_buffer_size = 1000;
  Device capped = open_device(options);
  expect_error(make(capped, 1001), ErrorCode::out_of_memory, {"(1004 bytes)", "(1000 bytes)"});
  CHECK(make(capped, 1000).ok());
}

TEST_CASE("refused: bindings that do not fit the kernel") {
  Device device = open_device();
  const Kernel add = prepare(device, kCheckAdd);
  const Buffer a = make_buffer(device, "a", 1024);
  const Buffer b = make_buffer(device, "b", 1024);
  const Buffer y = make_buffer(device, "y", 1024);
  const auto refused = [&](const Bindings& bindings, std::initializer_list<std::string_view> parts,
                           Where where = Where::current()) {
    expect_error(device.bind(add, bindings), kInvalid, parts, where);
  };
  refused({}, {"(0)", "(check_add)", "(3)"});
  refused({{&a}, {&b}}, {"(2)", "(check_add)", "(3)"});
  refused({{&a}, {&b}, {&y}, {&y}}, {"(4)", "(check_add)", "(3)"});
  refused({{&a}, {nullptr}, {&y}}, {"Binding (b)", "(check_add)", "no buffer"});
  const Buffer empty;
  refused({{&empty}, {&b}, {&y}}, {"Binding (a)", "no buffer"});
  refused({{&a, 4}, {&b}, {&y}}, {"Binding (a)", "(check_add)", "at 4", "not aligned"});
  refused({{&a, 0, 6}, {&b}, {&y}}, {"Binding (a)", "6 bytes", "not aligned"});
  refused({{&a}, {&b, 1024}, {&y}}, {"Binding (b)", "runs past the end of buffer (b"});
  refused({{&a}, {&b}, {&y, 256, 772}}, {"Binding (y)", "772 bytes at 256", "(y, 1024 bytes)"});
  refused({{&a, UINT64_MAX - 255}, {&b}, {&y}}, {"runs past the end"});
  expect_error(device.bind(Kernel(), Bindings{{&a}}), kInvalid, {"no kernel"});
  CHECK(device.bind(add, Bindings{{&a, 256, 768}, {&b, 256}, {&y, 256, 768}}).ok());
  check_usable(device);
}

TEST_CASE("refused: reading and writing one buffer in a dispatch, by the names of both bindings") {
  Device device = open_device();
  const Kernel add = prepare(device, kCheckAdd);
  const Buffer x = make_buffer(device, "hidden", 1024);
  const Buffer other = make_buffer(device, "other", 1024);
  const std::string_view sentence = "Kernel (check_add) would read buffer (hidden) as ";
  expect_error(device.bind(add, Bindings{{&x}, {&other}, {&x}}), kInvalid,
               {sentence, "as a and write it as y"});
  expect_error(device.bind(add, Bindings{{&other}, {&x}, {&x}}), kInvalid,
               {sentence, "as b and write it as y"});
  // WebGPU looks at whole buffers: ranges apart do not help.
  expect_error(device.bind(add, Bindings{{&x, 0, 256}, {&other}, {&x, 512, 256}}), kInvalid,
               {sentence, "bind it once, or use two buffers"});
  CHECK(device.bind(add, Bindings{{&x}, {&x}, {&other}}).ok());  // read twice
  check_usable(device);
}

TEST_CASE("in place: a kernel that binds its buffer once works") {
  Device device = open_device();
  const Kernel kernel = prepare(device, kInPlace);
  const Buffer y = upload(device, "y", std::vector<float>(100, 8));
  const BindGroup group = bind(device, kernel, {{&y}});
  Step step;
  must(step.dispatch(kernel, group, InPlaceParams{.n = 100, .add = 1}, {2}));
  must(step.dispatch(kernel, group, InPlaceParams{.n = 100, .add = 3}, {2}));
  must(device.submit(step));
  check_near(download<float>(device, y), std::vector<double>(100, 5.5), 0);
}

TEST_CASE("two outputs: one buffer may hold both where they do not overlap") {
  Device device = open_device();
  const Kernel kernel = prepare(device, kTwoOutputs);
  const Buffer y = make_buffer(device, "both", 512);
  expect_error(device.bind(kernel, Bindings{{&y}, {&y, 256}}), kInvalid,
               {"(two_outputs)", "same bytes of buffer (both)", "as low and as high"});
  expect_error(device.bind(kernel, Bindings{{&y}, {&y}}), kInvalid, {"same bytes"});
  const BindGroup group = bind(device, kernel, {{&y, 256}, {&y, 0, 256}});
  Step step;
  must(step.dispatch(kernel, group, std::span<const std::byte>(), {1}));
  must(device.submit(step));
  const std::vector<uint32_t> words = download<uint32_t>(device, y);
  CHECK(words[0] == 1000);
  CHECK(words[63] == 1063);
  CHECK(words[64] == 0);
  CHECK(words[127] == 63);
}

TEST_CASE("refused: kernels that the device cannot have") {
  DeviceOptions options;
  options.disabled = {Feature::shader_f16, Feature::subgroups};
  options.caps.max_storage_buffers_per_stage = 2;
  Device device = open_device(options);
  expect_error(device.prepare({{&kCheckAdd}}), ErrorCode::unsupported,
               {"(3)", "(check_add)", "(2)"});
  expect_error(device.prepare({{&kCheckHalf, {}, {}, {Feature::shader_f16}}}),
               ErrorCode::unsupported, {"(check_half)", "shader-f16", "switched on"});
  expect_error(device.prepare({{&kCheckSubgroups, {}, {}, {Feature::subgroups}}}),
               ErrorCode::unsupported, {"(check_subgroups)", "subgroups"});
  static const KernelSource big = [] {
    KernelSource source = kInPlace;
    source.params_size = 516;
    return source;
  }();
  expect_error(device.prepare({{&big}}), ErrorCode::unsupported, {"(516 bytes)", "(512 bytes)"});
  // Values that the kernel does not know or that do not fit are refused before Dawn sees them.
  expect_error(device.prepare({{&kInPlace, {}, {{"no_such_override", 1}}}}), kInvalid,
               {"in_place", "no_such_override"});
  expect_error(device.prepare({{&kInPlace}, {nullptr}}), kInvalid, {"no source"});
  CHECK(must(device.prepare({{&kInPlace}, {&kCheckChain}})).size() == 2);
}

TEST_CASE("refused: dispatches with the wrong parameters, bindings or grid") {
  Device device = open_device();
  const std::vector<Kernel> kernels = must(device.prepare({{&kCheckChain}, {&kInPlace}}));
  const Kernel& chain = kernels[0];
  const Kernel& in_place = kernels[1];
  const Buffer x = make_buffer(device, "x", 256);
  const Buffer y = make_buffer(device, "y", 256);
  const BindGroup group = bind(device, chain, {{&x}, {&y}});
  const CheckChainParams params{.n = 64, .add = 1};
  const auto bytes = std::as_bytes(std::span(&params, 1));
  Step step;
  expect_error(step.dispatch(chain, group, bytes.first(4), {1}), kInvalid,
               {"(4 bytes)", "(check_chain)", "(8 bytes)"});
  expect_error(step.dispatch(chain, group, std::span<const std::byte>(), {1}), kInvalid,
               {"(0 bytes)"});
  // Same size, another kernel's meaning.
  expect_error(step.dispatch(chain, group, InPlaceParams{.n = 64, .add = 1}, {1}), kInvalid,
               {"Kernel (check_chain)", "parameters of kernel (in_place)"});
  expect_error(step.dispatch(in_place, group, InPlaceParams{.n = 64, .add = 1}, {1}), kInvalid,
               {"Kernel (in_place)", "bindings of kernel (check_chain)"});
  expect_error(step.dispatch(Kernel(), group, params, {1}), kInvalid, {"no kernel"});
  expect_error(step.dispatch(chain, BindGroup(), params, {1}), kInvalid, {"no bindings"});
  const uint32_t limit = device.limits().max_workgroups_per_dimension;
  for (const Grid grid : {Grid{limit + 1, 1, 1}, Grid{1, limit + 1, 1}, Grid{1, 1, UINT32_MAX}}) {
    expect_error(step.dispatch(chain, group, params, grid), kInvalid,
                 {"Grid", "(check_chain)", fmt::format("({})", limit)});
  }
  CHECK(step.size() == 0);
  const size_t index = must(step.dispatch(chain, group, params, {1}));
  expect_error(step.set_grid(index, {1, limit + 1, 1}), kInvalid, {"Grid", "(check_chain)"});
  expect_error(step.set_params(index, bytes.first(4)), kInvalid, {"(4 bytes)"});
  expect_error(step.set_params(index + 1, bytes), kInvalid, {"Command (1)", "not a dispatch"});
  const size_t copy = must(step.copy(x, 0, y, 0, 4));
  expect_error(step.set_params(copy, bytes), kInvalid, {"Command (1)", "not a dispatch"});
  expect_error(step.set_grid(copy, {1}), kInvalid, {"Command (1)", "not a dispatch"});
  must(device.submit(step));
  check_usable(device);
}

TEST_CASE("refused: copies, writes and reads that do not fit or are not aligned") {
  Device device = open_device();
  const Buffer x = make_buffer(device, "x", 10);  // 12 are allocated
  const Buffer y = make_buffer(device, "y", 64);
  const Buffer empty;
  Step step;
  expect_error(step.copy(x, 2, y, 0, 4), kInvalid, {"not aligned to 4", "(x, at 2)"});
  expect_error(step.copy(x, 0, y, 2, 4), kInvalid, {"not aligned to 4", "(y, at 2)"});
  expect_error(step.copy(x, 0, y, 0, 6), kInvalid, {"copy of 6 bytes"});
  expect_error(step.copy(x, 0, y, 0, 16), kInvalid, {"runs past the end"});
  expect_error(step.copy(y, 0, x, 8, 8), kInvalid, {"runs past the end"});
  expect_error(step.copy(y, UINT64_MAX - 3, x, 0, 8), kInvalid, {"runs past the end"});
  expect_error(step.copy(y, 0, y, 32, 16), kInvalid, {"both source and target"});
  expect_error(step.copy(empty, 0, y, 0, 4), kInvalid, {"no source"});
  CHECK(step.size() == 0);

  const std::vector<std::byte> bytes(64);
  expect_error(device.write(y, 2, bytes), kInvalid, {"(2)", "buffer (y)", "multiple of 4"});
  expect_error(device.write(y, 4, bytes), kInvalid, {"64 bytes at 4", "(y, 64 bytes)"});
  expect_error(device.write(x, 0, std::span(bytes).first(11)), kInvalid, {"(x, 10 bytes)"});
  expect_error(device.write(y, UINT64_MAX - 3, bytes), kInvalid, {"runs past the end"});
  expect_error(device.write(empty, 0, bytes), kInvalid, {"empty"});
  must(device.write(y, 64, {}));

  expect_error(device.read(y, 2, 4), kInvalid, {"4 bytes at 2", "(y, 64 bytes)"});
  expect_error(device.read(y, 0, 0), kInvalid, {"0 bytes at 0"});
  expect_error(device.read(y, 0, 65), kInvalid, {"65 bytes at 0"});
  expect_error(device.read(y, UINT64_MAX - 3, 8), kInvalid, {"does not fit"});
  expect_error(device.read(empty, 0, 4), kInvalid, {"empty"});
  expect_error(device.submit_and_read(nullptr, {}), kInvalid, {"nothing to read back"});
  check_usable(device);
}

TEST_CASE("refused: a step that names a buffer which is gone") {
  Device device = open_device();
  const Kernel kernel = prepare(device, kInPlace);
  Step dispatch;
  Step copy;
  const Buffer kept = make_buffer(device, "kept", 256);
  {
    const Buffer gone = make_buffer(device, "gone", 256);
    must(dispatch.dispatch(kernel, bind(device, kernel, {{&gone}}),
                           InPlaceParams{.n = 64, .add = 1}, {1}));
    must(copy.copy(gone, 0, kept, 0, 256));
  }
  expect_error(device.submit(dispatch), ErrorCode::internal, {"The GPU reports an error", "gone"});
  expect_error(device.submit(copy), ErrorCode::internal, {"The GPU reports an error", "gone"});
  check_usable(device);
}

}  // namespace
}  // namespace ptero::gpu
