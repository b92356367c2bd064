// SPDX-License-Identifier: BSD-3-Clause
#include "convert/program_cache.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#ifndef _WIN32
#include <csignal>

#include <sys/resource.h>
#endif

#include <doctest/doctest.h>

#include "base/composed_source.h"
#include "base/file_output.h"
#include "convert/test_model.h"
#include "pte/program_reader.h"
#include "pte/program_writer.h"

namespace ptero::convert {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test::TestModel;

constexpr uint64_t kRoomy = uint64_t{1} << 30;

// A folder with a model in it; the cache is in "cache", which is not there at first.
struct Folder {
  fs::path path;

  Folder() {
    std::random_device random;
    path = fs::temp_directory_path() / fmt::format("ptero_program_cache_{:08x}", random());
    REQUIRE(fs::create_directory(path));
  }
  ~Folder() { fs::remove_all(path); }

  std::string file(const char* name) const { return (path / name).string(); }
  ProgramCache cache(uint64_t limit = kRoomy) const { return {file("cache"), limit}; }
  std::string model(const char* name, uint32_t layers = 1) const {
    TestModel model;
    model.layers = layers;
    model.make();
    REQUIRE(write_file(file(name), *own_bytes(model.file.bytes())).ok());
    return file(name);
  }
  std::vector<std::string> kept() const {
    std::vector<std::string> names;
    if (fs::exists(path / "cache")) {
      for (const auto& entry : fs::directory_iterator(path / "cache")) {
        names.push_back(entry.path().filename().string());
      }
    }
    return names;
  }
  size_t programs() const {
    const auto names = kept();
    return static_cast<size_t>(std::ranges::count_if(
        names, [](const std::string& name) { return name.ends_with(".pte"); }));
  }
};

// What a front end hears.
struct Heard {
  int conversions = 0;
  std::vector<std::string> notes;
  OpenEvents events() {
    OpenEvents events;
    events.on_convert = [this] { ++conversions; };
    events.note = [this](const std::string& sentence) {
      if (!sentence.starts_with("The GGUF file holds no tokenizer")) {
        notes.push_back(sentence);
      }
    };
    return events;
  }
};

std::vector<std::byte> bytes_of(const pte::Program& program) {
  const auto source = pte::assemble_program(program);
  REQUIRE(source.ok());
  std::vector<std::byte> bytes((*source)->size());
  REQUIRE((*source)->read(0, bytes).ok());
  return bytes;
}

pte::Program open(const std::string& path, const ProgramCache* cache, Heard& heard,
                  const ConvertOptions& options = {}) {
  Result<pte::Program> program = open_gguf(path, options, cache, heard.events());
  REQUIRE_MESSAGE(program.ok(), program.error().to_string());
  return *std::move(program);
}

TEST_CASE("cache: a file is converted once, and the kept program is the same") {
  const Folder folder;
  const std::string path = folder.model("x.gguf");
  const ProgramCache cache = folder.cache();
  Heard heard;
  const auto converted = bytes_of(open(path, nullptr, heard));
  CHECK(heard.conversions == 1);
  CHECK(folder.kept().empty());
  CHECK(bytes_of(open(path, &cache, heard)) == converted);
  CHECK(heard.conversions == 2);
  CHECK(bytes_of(open(path, &cache, heard)) == converted);
  CHECK(heard.conversions == 2);
  CHECK(heard.notes.empty());
  const auto programs = cache.list();
  REQUIRE(programs.ok());
  REQUIRE(programs->size() == 1);
  CHECK((*programs)[0].source == path);
  CHECK((*programs)[0].bytes == converted.size());

  // By content: another name, another place, other times.
  fs::create_directory(folder.path / "other");
  fs::copy_file(path, folder.path / "other" / "y.gguf");
  CHECK(bytes_of(open(folder.file("other/y.gguf"), &cache, heard)) == converted);
  CHECK(heard.conversions == 2);
  // Other options are another program.
  open(path, &cache, heard, {.max_seq = 8});
  open(path, &cache, heard, {.weights = WeightFormat::f16});
  open(path, &cache, heard, {.float_head = true});
  open(path, &cache, heard, {.context = 16});
  CHECK(heard.conversions == 6);
  CHECK(folder.programs() == 5);
  CHECK(cache.clear().ok());
  CHECK(folder.kept().empty());
}

// Same size, same times of writing, once one byte in the middle of the weights differs.
TEST_CASE("cache: a changed file is never taken for what it was") {
  const Folder folder;
  const std::string path = folder.model("x.gguf", 2);
  const ProgramCache cache = folder.cache();
  Heard heard;
  const auto before = bytes_of(open(path, &cache, heard));
  // Old enough that its stamp is kept.
  std::this_thread::sleep_for(milliseconds(2100));
  open(path, &cache, heard);
  REQUIRE(std::ranges::any_of(folder.kept(),
                              [](const std::string& name) { return name.ends_with(".stamp"); }));
  const auto time = fs::last_write_time(path);
  const auto change = [&](std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char old = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(old ^ 0x10));
  };
  const auto middle = static_cast<std::streamoff>(fs::file_size(path) / 2);
  change(middle);
  fs::last_write_time(path, time);
  CHECK(bytes_of(open(path, &cache, heard)) != before);
  CHECK(heard.conversions == 2);
  // Back again, and the first program is still there.
  change(middle);
  CHECK(bytes_of(open(path, &cache, heard)) == before);
  CHECK(heard.conversions == 2);
}

TEST_CASE("cache: a file that changes while it is read leaves nothing") {
  const Folder folder;
  const std::string path = folder.model("x.gguf");
  const ProgramCache cache = folder.cache();
  OpenEvents events;
  events.watch = [&](ByteSourcePtr bytes) {
    std::this_thread::sleep_for(milliseconds(30));
    fs::last_write_time(path, fs::file_time_type::clock::now());
    return bytes;
  };
  const auto result = open_gguf(path, {}, &cache, events);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().message() == fmt::format("The file {} changes while it is read.", path));
  CHECK(folder.programs() == 0);
}

TEST_CASE("cache: a program that cannot be read is made again") {
  const Folder folder;
  const std::string path = folder.model("x.gguf");
  const ProgramCache cache = folder.cache();
  Heard heard;
  const auto whole = bytes_of(open(path, &cache, heard));
  const std::string kept = (*cache.list())[0].path;
  fs::resize_file(kept, fs::file_size(kept) / 2);
  CHECK(bytes_of(open(path, &cache, heard)) == whole);
  CHECK(heard.conversions == 2);
  CHECK(bytes_of(open(path, &cache, heard)) == whole);
  CHECK(heard.conversions == 2);
}

TEST_CASE("cache: the program that was not used for longest goes first") {
  const Folder folder;
  const std::string a = folder.model("a.gguf", 1);
  const std::string b = folder.model("b.gguf", 2);
  const std::string c = folder.model("c.gguf", 3);
  Heard heard;
  const size_t size = bytes_of(open(c, nullptr, heard)).size();
  const ProgramCache cache = folder.cache(2 * size);
  const auto use = [&](const std::string& path) {
    const int before = heard.conversions;
    open(path, &cache, heard);
    std::this_thread::sleep_for(milliseconds(30));
    return heard.conversions > before;
  };
  CHECK(use(a));
  CHECK(use(b));
  CHECK_FALSE(use(a));
  CHECK(use(c));  // b goes
  CHECK(folder.programs() == 2);
  CHECK_FALSE(use(a));
  CHECK_FALSE(use(c));
  CHECK(use(b));  // a goes
  CHECK_FALSE(use(c));
  // What no cache of this size can hold.
  const ProgramCache small = folder.cache(size / 2);
  CHECK(bytes_of(open(c, &small, heard)).size() == size);  // it is there already
  REQUIRE(small.clear().ok());
  open(c, &small, heard);
  REQUIRE(heard.notes.size() == 1);
  CHECK(heard.notes[0].find("larger than the cache may be") != std::string::npos);
  CHECK(folder.programs() == 0);
}

TEST_CASE("cache: other people's files stay, what a crash left goes") {
  const Folder folder;
  const std::string path = folder.model("x.gguf");
  const ProgramCache cache = folder.cache();
  Heard heard;
  open(path, &cache, heard);
  const std::string program = (*cache.list())[0].path;
  const std::string old_part = program + ".1-0.part";
  const std::string new_part = program + ".2-0.part";
  for (const std::string& name :
       {folder.file("cache/mine.pte"), folder.file("cache/notes.txt"), old_part, new_part}) {
    std::ofstream(name) << "x";
  }
  fs::last_write_time(old_part, fs::file_time_type::clock::now() - std::chrono::hours(25));
  open(folder.model("y.gguf", 2), &cache, heard);
  CHECK_FALSE(fs::exists(old_part));
  CHECK(fs::exists(new_part));
  REQUIRE(cache.clear().ok());
  auto left = folder.kept();
  std::ranges::sort(left);
  CHECK(left == std::vector<std::string>{"mine.pte", "notes.txt"});
}

TEST_CASE(
    "cache: without a place to write the program runs from memory, and one sentence says so") {
  const Folder folder;
  const std::string path = folder.model("x.gguf");
  Heard heard;
  const auto converted = bytes_of(open(path, nullptr, heard));
  // A file where the folder would be, for the test may run as a user who may write anywhere.
  std::ofstream(folder.file("taken")) << "x";
  const ProgramCache cache(folder.file("taken") + "/programs", kRoomy);
  CHECK(bytes_of(open(path, &cache, heard)) == converted);
  REQUIRE(heard.notes.size() == 1);
  CHECK(heard.notes[0] ==
        fmt::format("The converted program is not kept, so the next start converts again: The "
                    "folder {} cannot be made (Not a directory).",
                    cache.folder()));
}

#ifndef _WIN32
TEST_CASE("cache: a full disk") {
  const Folder folder;
  const std::string path = folder.model("x.gguf", 4);
  const ProgramCache cache = folder.cache();
  Heard heard;
  const auto converted = bytes_of(open(path, nullptr, heard));
  REQUIRE(converted.size() > (64 << 10));
  // A file size limit stands for the full disk: both make the write come back short.
  rlimit old_limit;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  const rlimit small{.rlim_cur = 32 << 10, .rlim_max = old_limit.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const pte::Program program = open(path, &cache, heard);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  std::signal(SIGXFSZ, old_handler);
  CHECK(bytes_of(program) == converted);
  REQUIRE(heard.notes.size() == 1);
  CHECK(heard.notes[0].find("cannot be written (File too large)") != std::string::npos);
  CHECK(folder.programs() == 0);
}
#endif

TEST_CASE("cache: an interrupted conversion is no reason to go on from memory") {
  const Folder folder;
  const std::string path = folder.model("x.gguf");
  const ProgramCache cache = folder.cache();
  OpenEvents events;
  events.watch = [](const ByteSourcePtr& bytes) {
    return generate_bytes(bytes->size(), [](uint64_t, std::span<std::byte>) {
      return Status(make_error(ErrorCode::cancelled, "Interrupted."));
    });
  };
  const auto result = open_gguf(path, {}, &cache, events);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code() == ErrorCode::cancelled);
  CHECK(folder.programs() == 0);
}

TEST_CASE("cache: many at once") {
  const Folder folder;
  const std::vector<std::string> paths = {folder.model("a.gguf", 1), folder.model("b.gguf", 2)};
  Heard heard;
  std::vector<std::vector<std::byte>> expected;
  for (const std::string& path : paths) {
    expected.push_back(bytes_of(open(path, nullptr, heard)));
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      // Two of them have room for one program only, and take the other away.
      const ProgramCache cache = folder.cache(i < 2 ? expected[1].size() + 1000 : kRoomy);
      for (size_t round = 0; round < 4; ++round) {
        const size_t which = (i + round) % 2;
        const auto program = open_gguf(paths[which], {.threads = 1}, &cache);
        const auto bytes =
            program.ok() ? pte::assemble_program(*program) : Result<ByteSourcePtr>(program.error());
        std::vector<std::byte> got(bytes.ok() ? (*bytes)->size() : 0);
        wrong += !bytes.ok() || !(*bytes)->read(0, got).ok() || got != expected[which] ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(wrong == 0);
}

TEST_CASE("cache: that weights are rounded is said when it happens") {
  const Folder folder;
  TestModel model;
  model.layers = 1;
  model.type = test::TensorType::f16;
  model.make();
  const std::string path = folder.file("x.gguf");
  REQUIRE(write_file(path, *own_bytes(model.file.bytes())).ok());
  const ProgramCache cache = folder.cache();
  Heard heard;
  open(path, &cache, heard);
  open(path, &cache, heard);
  CHECK(heard.notes == std::vector<std::string>{"8 of 11 weights are rounded to 4 bits."});
  open(path, &cache, heard, {.weights = WeightFormat::f16});
  CHECK(heard.notes.size() == 1);
}

TEST_CASE("cache: wrong files are refused as anywhere") {
  const Folder folder;
  const ProgramCache cache = folder.cache();
  std::ofstream(folder.file("x.gguf")) << "GGUF";
  CHECK(open_gguf(folder.file("x.gguf"), {}, &cache).error().code() == ErrorCode::invalid_program);
  CHECK(open_gguf(folder.file("none.gguf"), {}, &cache).error().code() == ErrorCode::io);
  CHECK(folder.programs() == 0);
}

}  // namespace
}  // namespace ptero::convert
