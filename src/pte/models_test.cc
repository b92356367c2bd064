// SPDX-License-Identifier: BSD-3-Clause
// Every .pte in testdata must read, down to its graphs, and so must every one below
// $PTERO_TEST_MODELS. Without the variable one line says so and nothing counts as passed.
#include <cstdlib>
#include <filesystem>

#include <doctest/doctest.h>

#include "pte/data_map.h"
#include "pte/delegate_reader.h"
#include "pte/graph_reader.h"
#include "pte/limits.h"
#include "pte/memory_meter.h"
#include "pte/program_reader.h"

namespace ptero::pte {
namespace {

// The number of VulkanBackend delegates whose graphs were read.
size_t check_model(const std::filesystem::path& path) {
  CAPTURE(path.string());
  const Result<ByteSourcePtr> file = map_file(path.string());
  REQUIRE(file.ok());
  const ptero::test::MemoryMeter meter;
  const Result<Program> program = read_program(ByteRange::whole(*file));
  REQUIRE_MESSAGE(program.ok(), (program.ok() ? "" : program.error().to_string()));
  DataMap data;
  REQUIRE(data.add(*program).ok());
  size_t delegates = 0;
  for (const ExecutionPlan& plan : program->plans) {
    for (const BackendDelegate& entry : plan.delegates) {
      if (entry.id != kVulkanBackendId) {
        continue;
      }
      const Result<Delegate> delegate = read_delegate(delegate_bytes(*program, entry));
      REQUIRE_MESSAGE(delegate.ok(), (delegate.ok() ? "" : delegate.error().to_string()));
      const Result<Graph> graph = read_graph(*delegate, data);
      REQUIRE_MESSAGE(graph.ok(), (graph.ok() ? "" : graph.error().to_string()));
      CHECK_FALSE(graph->chain.empty());
      ++delegates;
    }
  }
  CHECK(meter.peak() < kMaxDecodedBytes / 10);  // limits.h promises this much room
  return delegates;
}

size_t check_models(const std::filesystem::path& folder) {
  size_t delegates = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".pte") {
      delegates += check_model(entry.path());
    }
  }
  return delegates;
}

TEST_CASE("models: every exported fixture of testdata reads without an error") {
  CHECK(check_models(PTERO_TESTDATA) > 0);
}

TEST_CASE("models: every file of PTERO_TEST_MODELS reads without an error") {
  const char* folder = std::getenv("PTERO_TEST_MODELS");
  if (folder == nullptr) {
    MESSAGE("PTERO_TEST_MODELS is not set: no model was read.");
    return;
  }
  CHECK(check_models(folder) > 0);
}

}  // namespace
}  // namespace ptero::pte
