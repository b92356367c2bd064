// SPDX-License-Identifier: BSD-3-Clause
#include "base/file_output.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#ifndef _WIN32
#include <csignal>

#include <sys/resource.h>
#endif

#ifndef _WIN32
#include <sys/stat.h>
#endif

#include <doctest/doctest.h>

#include "base/composed_source.h"

namespace ptero {
namespace {

namespace fs = std::filesystem;

// A fresh folder, removed at the end of the test.
class Folder {
 public:
  Folder() {
    std::random_device random;
    path_ = fs::temp_directory_path() / fmt::format("ptero_file_output_{:08x}", random());
    REQUIRE(fs::create_directory(path_));
  }
  ~Folder() { fs::remove_all(path_); }

  std::string file(const char* name) const { return (path_ / name).string(); }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path_), {}));
  }

 private:
  fs::path path_;
};

ByteSourcePtr text(std::string_view characters) {
  const auto bytes = std::as_bytes(std::span(characters));
  return own_bytes({bytes.begin(), bytes.end()});
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("writing a file: new, replaced, empty, through a link") {
  const Folder folder;
  const std::string path = folder.file("out.pte");
  CHECK(write_file(path, *text("first")).ok());
  CHECK(contents(path) == "first");
  CHECK(write_file(path, *text("2nd")).ok());
  CHECK(contents(path) == "2nd");
  CHECK(write_file(path, *text("")).ok());
  CHECK(contents(path).empty());
  CHECK(folder.entries() == 1);

  const std::string link = folder.file("link.pte");
  fs::create_symlink(path, link);
  CHECK(write_file(link, *text("through")).ok());
  CHECK(contents(path) == "through");
  CHECK(fs::is_symlink(link));
}

TEST_CASE("writing a file: it may be its own source") {
  const Folder folder;
  const std::string path = folder.file("self.pte");
  REQUIRE(write_file(path, *text("abcdef")).ok());
  const auto mapped = map_file(path);
  REQUIRE(mapped.ok());
  const auto twice =
      compose_bytes(12, {{0, ByteRange::whole(*mapped)}, {6, ByteRange::whole(*mapped)}}, "twice");
  REQUIRE(twice.ok());
  CHECK(write_file(path, **twice).ok());
  CHECK(contents(path) == "abcdefabcdef");
}

TEST_CASE("writing a file: an error of the source leaves the old file and nothing else") {
  const Folder folder;
  const std::string path = folder.file("out.pte");
  REQUIRE(write_file(path, *text("old")).ok());
  const auto broken = generate_bytes(3 * kCopyPieceSize, [](uint64_t offset, auto) {
    return offset == 0 ? ok_status() : Status(make_error(ErrorCode::cancelled, "Stopped."));
  });
  const Status status = write_file(path, *broken);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::cancelled);
  CHECK(status.error().message() == "Stopped.");
  CHECK(contents(path) == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("writing a file: paths that cannot be written say why") {
  const Folder folder;
  const Status no_folder = write_file(folder.file("none/out.pte"), *text("x"));
  REQUIRE_FALSE(no_folder.ok());
  CHECK(no_folder.error().code() == ErrorCode::io);
  CHECK(no_folder.error().message() ==
        fmt::format("The file {} cannot be created (No such file or directory).",
                    folder.file("none/out.pte")));
  const Status is_folder = write_file(folder.file("."), *text("x"));
  REQUIRE_FALSE(is_folder.ok());
  CHECK(is_folder.error().message() ==
        fmt::format("{} is a folder, not a file to write.", folder.file(".")));
#ifndef _WIN32
  // A pipe of our own: had the check a fault, a device of the machine would be replaced.
  const std::string pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const Status special = write_file(pipe, *text("x"));
  REQUIRE_FALSE(special.ok());
  CHECK(special.error().message() ==
        fmt::format("{} is not a regular file, so it is not written.", pipe));
  CHECK(fs::is_fifo(pipe));
  fs::remove(pipe);
#endif
  CHECK(folder.entries() == 0);
}

#ifndef _WIN32
TEST_CASE("writing a file: a full disk is an error and leaves nothing") {
  const Folder folder;
  // A file size limit stands for the full disk: both make the write come back short.
  rlimit old_limit;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  const rlimit small{.rlim_cur = 1 << 20, .rlim_max = old_limit.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto large = generate_bytes(kCopyPieceSize + 1, [](uint64_t, auto) { return ok_status(); });
  const Status status = write_file(folder.file("large.pte"), *large);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  std::signal(SIGXFSZ, old_handler);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::io);
  CHECK(status.error().message() ==
        fmt::format("The file {} ({} bytes) cannot be written (File too large).",
                    folder.file("large.pte"), large->size()));
  CHECK(folder.entries() == 0);
}
#endif

}  // namespace
}  // namespace ptero
