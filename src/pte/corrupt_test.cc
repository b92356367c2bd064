// SPDX-License-Identifier: BSD-3-Clause
// Crafted corruptions: each file tells one lie, and each lie has a sentence of its own as answer.
// The lies are in tables by part of the file (corrupt_*_test.cc).
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "pte/bundled_reader.h"
#include "pte/corrupt_cases.h"
#include "pte/flat_tensor_reader.h"
#include "pte/memory_meter.h"
#include "pte/program_reader.h"

namespace ptero::pte::test {
namespace {

// Of this process alone, so that a busy machine fails nothing.
constexpr double kMaxCpuSeconds = 5;
constexpr size_t kMaxMemory = size_t{512} << 20;

// tools/check_error_corpus.py compares these lines with the sentences in the readers.
void note_message(const std::string& message) {
  static std::ofstream file = [] {
    const char* path = std::getenv("PTERO_ERROR_CORPUS_OUT");
    return path == nullptr ? std::ofstream() : std::ofstream(path, std::ios::trunc);
  }();
  if (file.is_open()) {
    file << message << std::endl;
  }
}

// Sizes that depend on how the compiler orders a builder's calls stand as {names} in a sentence.
std::string with_sizes(const char* sentence, const std::vector<std::byte>& bytes) {
  const auto scalar = [&](size_t offset, auto value) {
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  };
  const uint64_t data = scalar(32, uint64_t{0});
  const uint32_t graph = static_cast<uint32_t>(delegate_blob().size()) - kVhHeaderSize - 176;
  return fmt::format(
      fmt::runtime(sentence), fmt::arg("file", bytes.size()),
      fmt::arg("file_cut", bytes.size() - 1), fmt::arg("flatbuffer", scalar(16, uint64_t{0})),
      fmt::arg("base", scalar(24, uint64_t{0})), fmt::arg("data", data),
      fmt::arg("last", data - 16), fmt::arg("graph", graph),
      fmt::arg("delegate", delegate_blob().size()), fmt::arg("behind", graph + kVhHeaderSize));
}

void expect_all_rejected(std::span<const Corruption> corruptions) {
  static std::set<std::string> names;
  for (const Corruption& corruption : corruptions) {
    CHECK_MESSAGE(names.insert(corruption.name).second, std::string(corruption.name));
    ModelFile file;
    const std::vector<std::byte> before = file.bytes;
    corruption.lie(file);
    // A lie of a few bytes or a file of its own?
    const bool rebuilt = file.bytes.size() > before.size();
    expect_rejected(corruption.name, ByteRange::whole(borrow_bytes(file.bytes, "model.pte")),
                    read_all, with_sizes(corruption.sentence, rebuilt ? file.bytes : before),
                    corruption.code);
  }
}

}  // namespace

void expect_rejected(const char* name, const ByteRange& file, Status (*read)(const ByteRange&),
                     std::string_view sentence, ErrorCode code) {
  const std::string case_name = name;
  CAPTURE(case_name);
  const ptero::test::MemoryMeter meter;
  const std::clock_t start = std::clock();
  const Status status = read(file);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  CHECK(seconds < kMaxCpuSeconds);
  CHECK(meter.peak() < kMaxMemory);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message() == sentence);
  CHECK(error_code_info(status.error().code()).name == error_code_info(code).name);
  note_message(status.error().message());
}

TEST_CASE("corrupt: the base files themselves are right") {
  ModelFile file;
  const Status modern = read_all(ByteRange::whole(borrow_bytes(file.bytes)));
  CHECK_MESSAGE(modern.ok(), (modern.ok() ? "" : modern.error().to_string()));
  const Result<Program> program = read_program(ByteRange::whole(borrow_bytes(file.bytes)));
  REQUIRE(program.ok());
  CHECK(program->layout.extended_header);
  CHECK(program->plans.size() == 2);
  CHECK(program->plans[0].values.size() == kCondition + 1);
  CHECK(program->plans[0].chains[0].stacktrace.size() == 7);
  CHECK(program->plans[0].chains[0].stacktrace[0][0].line == 12);
  CHECK(program->segments.size() == 6);

  // Its graph lacks the named data, which only a file with segments can have.
  const ModelFile old({.inline_data = true});
  const Result<Program> inlined = read_program(ByteRange::whole(borrow_bytes(old.bytes)));
  REQUIRE_MESSAGE(inlined.ok(), (inlined.ok() ? "" : inlined.error().to_string()));
  CHECK_FALSE(inlined->layout.extended_header);
  CHECK(inlined->constant_buffer.size() == 2);
  CHECK(delegate_bytes(*inlined, inlined->plans[0].delegates[0]).size() == delegate_blob().size());

  const std::vector<std::byte> ptd = flat_tensor_file();
  const Result<FlatTensor> weights = read_flat_tensor(ByteRange::whole(borrow_bytes(ptd)));
  REQUIRE_MESSAGE(weights.ok(), (weights.ok() ? "" : weights.error().to_string()));
  CHECK(weights->entries.size() == 2);
  CHECK(weights->entries[0].layout->sizes == std::vector<int32_t>{4});
  CHECK(weights->segments[1].size() == 8);

  const std::vector<std::byte> bpte = bundled_file();
  const Result<BundledProgram> bundle = read_bundled_program(ByteRange::whole(borrow_bytes(bpte)));
  REQUIRE_MESSAGE(bundle.ok(), (bundle.ok() ? "" : bundle.error().to_string()));
  CHECK(read_program(bundle->program).ok());
  CHECK(bundle->methods[0].cases[0].inputs.size() == 4);
  CHECK(*file_kind(ByteRange::whole(borrow_bytes(bpte))) == FileKind::bundled_program);
  CHECK(*file_kind(ByteRange::whole(borrow_bytes(ptd))) == FileKind::flat_tensor);
  CHECK(*file_kind(ByteRange::whole(borrow_bytes(file.bytes))) == FileKind::program);
  CHECK(*file_kind(ByteRange()) == FileKind::unknown);
}

TEST_CASE("corrupt: containers and segments") {
  expect_all_rejected(container_corruptions());
}
TEST_CASE("corrupt: values and tensors") {
  expect_all_rejected(value_corruptions());
}
TEST_CASE("corrupt: plans, instructions and delegates") {
  expect_all_rejected(plan_corruptions());
}
TEST_CASE("corrupt: delegate header and graph") {
  expect_all_rejected(graph_corruptions());
}
TEST_CASE("corrupt: packed weights") {
  expect_all_rejected(packing_corruptions());
}

}  // namespace ptero::pte::test
