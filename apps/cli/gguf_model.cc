// SPDX-License-Identifier: BSD-3-Clause
#include "cli/gguf_model.h"

#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "base/composed_source.h"
#include "base/system_files.h"
#include "cli/language_model.h"
#include "gguf/reader.h"

namespace ptero::cli {
namespace {

constexpr std::string_view kNone = "none";

// The same bytes; each piece that is read shows how far it is, and Ctrl-C ends it.
ByteSourcePtr watched(ByteSourcePtr bytes) {
  const bool shows = isatty(STDERR_FILENO) != 0;
  const uint64_t size = bytes->size();
  return generate_bytes(
      size, [bytes = std::move(bytes), shows, size](uint64_t offset, std::span<std::byte> out) {
        Status status = bytes->read(offset, out);
        if (shows) {
          const uint64_t done = offset + out.size();
          fmt::print(stderr, "\rconverting: {} %{}", size == 0 ? 100 : 100 * done / size,
                     done == size || !status.ok() || interrupted() ? "\r\033[K" : "");
        }
        return interrupted() ? Status(make_error(ErrorCode::cancelled, "Interrupted.")) : status;
      });
}

}  // namespace

void add_cache_flags(CLI::App& command, CacheFlags& flags) {
  command
      .add_option("--cache", flags.folder,
                  "folder that keeps programs made of GGUF files (default: the user's cache "
                  "folder); none: convert at each start")
      ->envname("PTERO_CACHE")
      ->type_name("DIR");
  command
      .add_option("--cache-limit", flags.limit,
                  "bytes that it may hold, such as 8GB; what was not used for longest goes first")
      ->envname("PTERO_CACHE_LIMIT")
      ->capture_default_str()
      ->type_name("SIZE");
}

namespace {

// CLI11 would pass over a wrong value in an environment variable without a word.
Result<uint64_t> bytes_of(const std::string& size) {
  std::string number = size;
  uint64_t bytes = 0;
  bool right = false;
  try {
    right = CLI::AsSizeValue(false)(number).empty() && CLI::detail::lexical_cast(number, bytes);
  } catch (const CLI::ValidationError&) {
    // said below
  }
  PTERO_REJECT_IF(!right, invalid_argument, "--cache-limit ({}) is not a size, such as 8GB.", size);
  return bytes;
}

}  // namespace

Result<std::optional<convert::ProgramCache>> open_cache(const CacheFlags& flags) {
  if (flags.folder == kNone) {
    return std::optional<convert::ProgramCache>();
  }
  PTERO_ASSIGN_OR_RETURN(const uint64_t limit, bytes_of(flags.limit));
  std::string folder = flags.folder;
  if (folder.empty()) {
    const std::optional<std::string> users = user_cache_folder();
    PTERO_REJECT_IF(!users, unsupported,
                    "The environment does not tell a folder for caches; choose one with --cache "
                    "DIR.");
    folder = *users + "/ptero/programs";
  }
  return std::optional(convert::ProgramCache(std::move(folder), limit));
}

Result<bool> is_gguf_file(const std::string& path) {
  PTERO_ASSIGN_OR_RETURN(ByteSourcePtr source, map_file(path));
  return gguf::is_gguf(ByteRange::whole(std::move(source)));
}

Result<convert::WeightFormat> weight_format(const std::string& name) {
  if (name == "q4") {
    return convert::WeightFormat::q4;
  }
  if (name == "f16") {
    return convert::WeightFormat::f16;
  }
  PTERO_REJECT_IF(name != "f32", invalid_argument, "--weights ({}) is none of q4, f16 and f32.",
                  name);
  return convert::WeightFormat::f32;
}

Result<pte::Program> open_gguf_model(const std::string& path,
                                     const convert::ConvertOptions& options,
                                     const CacheFlags& flags) {
  std::optional<convert::ProgramCache> cache;
  if (Result<std::optional<convert::ProgramCache>> opened = open_cache(flags); opened.ok()) {
    cache = *std::move(opened);
  } else if (opened.error().code() == ErrorCode::unsupported) {
    stderr_log()(LogLevel::warning, opened.error().message());
  } else {
    return opened.error();
  }
  convert::OpenEvents events;
  std::chrono::steady_clock::time_point start;
  events.on_convert = [&] {
    start = std::chrono::steady_clock::now();
    if (cache) {
      fmt::print(stderr, "ptero: converting {}, once\n", path);
    }
  };
  events.on_kept = [&] {
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    fmt::print(stderr, "ptero: converted in {:.1f} s (`ptero cache list` shows what is kept)\n",
               time.count());
  };
  events.watch = watched;
  events.note = [](const std::string& sentence) { stderr_log()(LogLevel::warning, sentence); };
  return convert::open_gguf(path, options, cache ? &*cache : nullptr, events);
}

}  // namespace ptero::cli
