// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <vector>

#ifdef _WIN32
#include <process.h>
#else
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
#endif

#include <fmt/format.h>

#include "base/file_output.h"
#include "inspect/drawing.h"

namespace ptero::inspect {
namespace {

namespace fs = std::filesystem;

// A folder of our own for what dot reads and writes.
class WorkFolder {
 public:
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Status make() {
    std::error_code error;
    const fs::path base = fs::temp_directory_path(error);
    for (int i = 0; !error && i < 1000; ++i) {
      const fs::path path = base / fmt::format("ptero-draw-{}-{}", process_id(), i);
      if (fs::create_directory(path, error)) {
        path_ = path;
        return ok_status();
      }
    }
    return make_error(ErrorCode::io, "No temporary folder can be made in {} ({}).", base.string(),
                      error.message());
  }
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
#ifdef _WIN32
  static int process_id() { return _getpid(); }
#else
  static int process_id() { return getpid(); }
#endif
  fs::path path_;
};

// Runs a program found on PATH, without a shell. The exit status, or -1 when it cannot be started.
int run_program(std::vector<std::string> words) {
  std::vector<char*> args;
  for (std::string& word : words) {
    args.push_back(word.data());
  }
  args.push_back(nullptr);
#ifdef _WIN32
  return static_cast<int>(_spawnvp(_P_WAIT, args[0], args.data()));
#else
  pid_t child = 0;
  if (posix_spawnp(&child, args[0], nullptr, nullptr, args.data(), environ) != 0) {
    return -1;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // 127 is how some systems report that the program was not found.
  return WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
#endif
}

ByteSourcePtr text_source(const std::string& text, const std::string& name) {
  const auto bytes = std::as_bytes(std::span(text));
  return own_bytes({bytes.begin(), bytes.end()}, name);
}

}  // namespace

Status draw(const std::string& dot, const std::string& path) {
  constexpr std::array<std::string_view, 3> kFormats = {"svg", "png", "pdf"};
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".dot" || extension == ".gv") {
    return write_file(path, *text_source(dot, "drawing"));
  }
  std::string_view format;
  for (const std::string_view candidate : kFormats) {
    if (extension == fmt::format(".{}", candidate)) {
      format = candidate;
    }
  }
  PTERO_REJECT_IF(format.empty(), invalid_argument,
                  "The extension ({}) of {} is none that a drawing can have (.svg, .png, .pdf, "
                  ".dot).",
                  extension, path);
  WorkFolder folder;
  PTERO_RETURN_IF_ERROR(folder.make());
  const std::string input = folder.file("in.dot");
  const std::string output = folder.file("out");
  PTERO_RETURN_IF_ERROR(write_file(input, *text_source(dot, "drawing")));
  const int status = run_program({"dot", fmt::format("-T{}", format), "-o", output, input});
  PTERO_REJECT_IF(status == -1, unsupported,
                  "The program dot of Graphviz is not installed, and drawing {} needs it; install "
                  "Graphviz, or write the text for it with the extension .dot.",
                  path);
  PTERO_REJECT_IF(status != 0, internal, "Graphviz's dot ends with status {} while drawing {}.",
                  status, path);
  PTERO_ASSIGN_OR_RETURN(const ByteSourcePtr drawn, map_file(output));
  return write_file(path, *drawn);
}

}  // namespace ptero::inspect
