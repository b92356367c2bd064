// SPDX-License-Identifier: BSD-3-Clause
// write(read(file)) says what the file says, and writing that again gives the same bytes: for the
// files in testdata and in $PTERO_TEST_MODELS. Without the variable one line says so.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "pte/delegate_reader.h"
#include "pte/delegate_writer.h"
#include "pte/flat_tensor_reader.h"
#include "pte/flat_tensor_writer.h"
#include "pte/graph_reader.h"
#include "pte/program_reader.h"
#include "pte/program_writer.h"

namespace ptero::pte {
namespace {

namespace fs = std::filesystem;

template <typename T>
T take(Result<T> result) {
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().to_string()));
  return std::move(result).value();
}

std::vector<std::byte> bytes_of(const ByteRange& range) {
  return take(range.copy(uint64_t{1} << 30));
}
std::vector<std::byte> bytes_of(const ByteSourcePtr& source) {
  return bytes_of(ByteRange::whole(source));
}

void check_same(const std::vector<ByteRange>& a, const std::vector<ByteRange>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(bytes_of(a[i]) == bytes_of(b[i]));
  }
}

void check_same(const ExecutionPlan& a, const ExecutionPlan& b) {
  CHECK(a.name == b.name);
  CHECK(a.container == b.container);
  CHECK(a.values == b.values);
  CHECK(a.inputs == b.inputs);
  CHECK(a.outputs == b.outputs);
  CHECK(a.chains == b.chains);
  CHECK(a.operators == b.operators);
  CHECK(a.delegates == b.delegates);
  CHECK(a.non_const_buffer_sizes == b.non_const_buffer_sizes);
  CHECK(a.non_const_buffer_devices == b.non_const_buffer_devices);
}

void check_same(const Program& a, const Program& b) {
  CHECK(a.version == b.version);
  REQUIRE(a.plans.size() == b.plans.size());
  for (size_t i = 0; i < a.plans.size(); ++i) {
    check_same(a.plans[i], b.plans[i]);
  }
  check_same(a.constant_buffer, b.constant_buffer);
  check_same(a.inline_delegate_data, b.inline_delegate_data);
  check_same(a.segments, b.segments);
  CHECK(a.constant_segment == b.constant_segment);
  CHECK(a.mutable_data_segments == b.mutable_data_segments);
  CHECK(a.named_data == b.named_data);
}

void check_same(const Graph& a, const Graph& b) {
  CHECK(a.version == b.version);
  CHECK(a.chain == b.chain);
  CHECK(a.values == b.values);
  CHECK(a.inputs == b.inputs);
  CHECK(a.outputs == b.outputs);
  REQUIRE(a.constants.size() == b.constants.size());
  for (size_t i = 0; i < a.constants.size(); ++i) {
    CHECK(same_reference(a.constants[i], b.constants[i]));
  }
  CHECK(a.shaders.size() == b.shaders.size());
  CHECK(a.storage_override == b.storage_override);
  CHECK(a.layout_override == b.layout_override);
}

void round_trip_delegate(const ByteRange& blob, const DataMap& data) {
  const Delegate parts = take(read_delegate(blob));
  const Graph graph = take(read_graph(parts, data));
  const ByteSourcePtr once = take(assemble_delegate(graph, parts.constants));
  const Delegate parts_again = take(read_delegate(ByteRange::whole(once)));
  const Graph again = take(read_graph(parts_again, data));
  check_same(graph, again);
  CHECK(bytes_of(parts.constants) == bytes_of(parts_again.constants));
  CHECK(bytes_of(take(assemble_delegate(again, parts_again.constants))) == bytes_of(once));
}

// Returns the number of Vulkan delegates.
size_t round_trip_program(const ByteRange& file, const DataMap& external) {
  const Program program = take(read_program(file));
  const ByteSourcePtr once = take(assemble_program(program));
  const Program again = take(read_program(ByteRange::whole(once)));
  check_same(program, again);
  CHECK(bytes_of(take(assemble_program(again))) == bytes_of(once));

  DataMap data = external;
  REQUIRE(data.add(program).ok());
  size_t delegates = 0;
  for (const ExecutionPlan& plan : program.plans) {
    for (const BackendDelegate& delegate : plan.delegates) {
      if (delegate.id == kVulkanBackendId) {
        round_trip_delegate(delegate_bytes(program, delegate), data);
        ++delegates;
      }
    }
  }
  return delegates;
}

void round_trip_flat_tensor(const ByteRange& file) {
  const FlatTensor tensors = take(read_flat_tensor(file));
  const ByteSourcePtr once = take(assemble_flat_tensor(tensors));
  const FlatTensor again = take(read_flat_tensor(ByteRange::whole(once)));
  CHECK(tensors.version == again.version);
  CHECK(tensors.entries == again.entries);
  check_same(tensors.segments, again.segments);
  CHECK(bytes_of(take(assemble_flat_tensor(again))) == bytes_of(once));
}

struct Counts {
  size_t programs = 0;
  size_t delegates = 0;
  size_t flat_tensors = 0;
};

Counts round_trip_folder(const fs::path& folder) {
  Counts counts;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    CAPTURE(path);
    if (entry.path().extension() == ".pte") {
      counts.delegates += round_trip_program(ByteRange::whole(take(map_file(path))), {});
      ++counts.programs;
    } else if (entry.path().extension() == ".ptd") {
      round_trip_flat_tensor(ByteRange::whole(take(map_file(path))));
      ++counts.flat_tensors;
    }
  }
  return counts;
}

TEST_CASE("round trip: files of every container feature") {
  const Counts counts = round_trip_folder(fs::path(PTERO_TESTDATA) / "pte");
  CHECK(counts.programs >= 7);
  CHECK(counts.delegates >= 2);
  CHECK(counts.flat_tensors >= 1);
}

TEST_CASE("round trip: the models of the operator tests") {
  const Counts counts = round_trip_folder(fs::path(PTERO_TESTDATA) / "models");
  CHECK(counts.programs >= 50);
  CHECK(counts.delegates >= 50);
}

TEST_CASE("round trip: every file of PTERO_TEST_MODELS") {
  const char* folder = std::getenv("PTERO_TEST_MODELS");
  if (folder == nullptr) {
    MESSAGE("PTERO_TEST_MODELS is not set: no model made the round trip.");
    return;
  }
  CHECK(round_trip_folder(folder).programs > 0);
}

}  // namespace
}  // namespace ptero::pte
