// SPDX-License-Identifier: BSD-3-Clause
#include "base/system_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include <doctest/doctest.h>

namespace ptero {
namespace {

namespace fs = std::filesystem;

TEST_CASE("file stamps: the same until the file changes, whatever its times are set to") {
  std::random_device random;
  const fs::path folder =
      fs::temp_directory_path() / fmt::format("ptero_system_files_{:08x}", random());
  REQUIRE(fs::create_directory(folder));
  const fs::path path = folder / "x";
  const auto write = [&](const fs::path& to, const char* text) { std::ofstream(to) << text; };
  const auto stamp = [&] {
    // Clocks of file systems tick some hundred times a second.
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    const auto taken = file_stamp(path.string());
    REQUIRE(taken.ok());
    return *taken;
  };
  write(path, "one");
  const auto before = std::chrono::system_clock::now();
  const FileStamp first = stamp();
  CHECK(stamp().text == first.text);
  CHECK(std::chrono::abs(before - first.changed) < std::chrono::seconds(10));
  const auto time = fs::last_write_time(path);
  write(path, "two");
  fs::last_write_time(path, time);  // as if nothing had happened
  const FileStamp second = stamp();
  CHECK(second.text != first.text);
  write(folder / "y", "two");
  fs::last_write_time(folder / "y", time);
  fs::rename(folder / "y", path);
  CHECK(stamp().text != second.text);
  fs::remove_all(folder);
  const auto gone = file_stamp(path.string());
  REQUIRE_FALSE(gone.ok());
  CHECK(gone.error().code() == ErrorCode::io);
}

#if !defined(_WIN32) && !defined(__APPLE__)
TEST_CASE("the user's cache folder follows the environment") {
  const auto set = [](const char* name, const char* value) {
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  };
  const char* const home = std::getenv("HOME");
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const std::string old_home = home != nullptr ? home : "";
  const std::string old_cache = cache != nullptr ? cache : "";
  set("HOME", "/users/someone");
  set("XDG_CACHE_HOME", nullptr);
  CHECK(user_cache_folder() == "/users/someone/.cache");
  set("XDG_CACHE_HOME", "/elsewhere");
  CHECK(user_cache_folder() == "/elsewhere");
  set("XDG_CACHE_HOME", "relative");
  CHECK(user_cache_folder() == "/users/someone/.cache");
  set("HOME", nullptr);
  CHECK(user_cache_folder() == std::nullopt);
  set("HOME", home != nullptr ? old_home.c_str() : nullptr);
  set("XDG_CACHE_HOME", cache != nullptr ? old_cache.c_str() : nullptr);
}
#endif

}  // namespace
}  // namespace ptero
