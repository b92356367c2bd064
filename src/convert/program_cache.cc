// SPDX-License-Identifier: BSD-3-Clause
#include "convert/program_cache.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <blake3.h>

#include "base/composed_source.h"
#include "base/file_output.h"
#include "base/system_files.h"
#include "gguf/reader.h"
#include "pte/program_reader.h"
#include "pte/program_writer.h"

namespace ptero::convert {
namespace {

namespace fs = std::filesystem;
using std::chrono::system_clock;

// <content>-<options>.pte is a program, .source beside it says what it was made from, and
// <stamp>.stamp holds the content of a file that looked like the stamp.
constexpr std::string_view kProgram = ".pte";
constexpr std::string_view kSource = ".source";
constexpr std::string_view kStamp = ".stamp";
constexpr size_t kContentDigits = 40;
constexpr size_t kOptionDigits = 16;
constexpr uint64_t kLongestPath = 1 << 16;

// See file_stamp().
constexpr std::chrono::seconds kClockResolution{2};
// A temporary file this old belongs to nobody any more.
constexpr std::chrono::hours kAbandoned{24};

fs::path fs_path(const std::string& utf8) {
  return fs::path(reinterpret_cast<const char8_t*>(utf8.c_str()));
}
std::string utf8_of(const fs::path& path) {
  const std::u8string text = path.u8string();
  return {text.begin(), text.end()};
}

Result<std::string> digest(const ByteSource& bytes, size_t digits) {
  blake3_hasher hasher;
  blake3_hasher_init(&hasher);
  PTERO_RETURN_IF_ERROR(copy_bytes(bytes, [&](std::span<const std::byte> piece) {
    blake3_hasher_update(&hasher, piece.data(), piece.size());
    return ok_status();
  }));
  std::array<uint8_t, BLAKE3_OUT_LEN> out;
  blake3_hasher_finalize(&hasher, out.data(), out.size());
  std::string text;
  for (const uint8_t byte : out) {
    text += fmt::format("{:02x}", byte);
  }
  text.resize(digits);
  return text;
}
Result<std::string> digest(std::string_view text, size_t digits) {
  return digest(*borrow_bytes(std::as_bytes(std::span(text))), digits);
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// "<content>-<options>"; empty for the name of anything else.
std::string key_of(const fs::path& path) {
  const std::string stem = utf8_of(path.stem());
  return stem.size() == kContentDigits + 1 + kOptionDigits && stem[kContentDigits] == '-' &&
                 is_hex(stem.substr(0, kContentDigits), kContentDigits) &&
                 is_hex(stem.substr(kContentDigits + 1), kOptionDigits)
             ? stem
             : "";
}

// Whether it is one of ours. Unfinished ones are "<name>.pte.<process>-<number>.part".
bool is_ours(const fs::path& path) {
  const std::string extension = utf8_of(path.extension());
  if (extension == kProgram || extension == kSource) {
    return !key_of(path).empty();
  }
  if (extension == kStamp) {
    return is_hex(utf8_of(path.stem()), kContentDigits);
  }
  return extension == ".part" && (!key_of(path.stem().stem()).empty() ||
                                  is_hex(utf8_of(path.stem().stem().stem()), kContentDigits));
}

std::string read_text(const std::string& path) {
  const Result<ByteSourcePtr> file = map_file(path);
  if (!file.ok()) {
    return "";
  }
  const auto bytes = ByteRange::whole(*file).copy(kLongestPath);
  return bytes.ok() ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "";
}

Status write_text(const std::string& path, std::string_view text) {
  return write_file(path, *borrow_bytes(std::as_bytes(std::span(text))));
}

// Calls `body` for each of our files; nothing when there is no folder.
Status for_each_file(const std::string& folder,
                     const std::function<void(const fs::directory_entry&)>& body) {
  std::error_code error;
  fs::directory_iterator at(fs_path(folder), error);
  if (error == std::errc::no_such_file_or_directory) {
    return ok_status();
  }
  PTERO_REJECT_IF(error, io, "The folder {} cannot be read ({}).", folder, error.message());
  for (; at != fs::directory_iterator(); at.increment(error)) {
    if (is_ours(at->path())) {
      body(*at);
    }
    if (error) {
      break;
    }
  }
  PTERO_REJECT_IF(error, io, "The folder {} cannot be read ({}).", folder, error.message());
  return ok_status();
}

system_clock::time_point to_system(fs::file_time_type time) {
  return system_clock::now() + std::chrono::duration_cast<system_clock::duration>(
                                   time - fs::file_time_type::clock::now());
}

std::string_view name_of(WeightFormat format) {
  return format == WeightFormat::q4 ? "q4" : format == WeightFormat::f16 ? "f16" : "f32";
}

}  // namespace

Result<std::vector<CachedProgram>> ProgramCache::list() const {
  std::vector<CachedProgram> programs;
  PTERO_RETURN_IF_ERROR(for_each_file(folder_, [&](const fs::directory_entry& entry) {
    if (entry.path().extension() != kProgram) {
      return;
    }
    std::error_code error;
    CachedProgram program;
    program.path = utf8_of(entry.path());
    program.source = read_text(path_of(key_of(entry.path()) + std::string(kSource)));
    program.bytes = entry.file_size(error);
    const fs::file_time_type used = entry.last_write_time(error);
    if (!error) {  // otherwise another process has just taken it away
      program.used = to_system(used);
      programs.push_back(std::move(program));
    }
  }));
  std::ranges::sort(programs, std::greater(), &CachedProgram::used);
  return programs;
}

Result<uint64_t> ProgramCache::clear() const {
  uint64_t bytes = 0;
  std::vector<fs::path> paths;
  PTERO_RETURN_IF_ERROR(for_each_file(
      folder_, [&](const fs::directory_entry& entry) { paths.push_back(entry.path()); }));
  for (const fs::path& path : paths) {
    std::error_code error;
    const uint64_t size = fs::file_size(path, error);
    const bool known = !error;
    fs::remove(path, error);
    PTERO_REJECT_IF(error, io, "The file {} cannot be removed ({}).", utf8_of(path),
                    error.message());
    bytes += known && path.extension() == kProgram ? size : 0;
  }
  return bytes;
}

Result<std::string> ProgramCache::key(const std::string& gguf_path,
                                      const ConvertOptions& options) const {
  const system_clock::time_point now = system_clock::now();
  PTERO_ASSIGN_OR_RETURN(const FileStamp stamp, file_stamp(gguf_path));
  PTERO_ASSIGN_OR_RETURN(const std::string stamp_name, digest(stamp.text, kContentDigits));
  const std::string stamp_path = path_of(stamp_name + std::string(kStamp));
  std::string content = read_text(stamp_path);
  if (!is_hex(content, kContentDigits)) {
    PTERO_ASSIGN_OR_RETURN(const ByteSourcePtr source, map_file(gguf_path));
    PTERO_ASSIGN_OR_RETURN(content, digest(*source, kContentDigits), "while reading {}", gguf_path);
    PTERO_ASSIGN_OR_RETURN(const FileStamp after, file_stamp(gguf_path));
    PTERO_REJECT_IF(after.text != stamp.text, io, "The file {} changes while it is read.",
                    gguf_path);
    if (stamp.changed + kClockResolution < now) {
      std::error_code ignored;
      fs::create_directories(fs_path(folder_), ignored);
      (void)write_text(stamp_path, content).ok();  // without it the file is read again next time
    }
  }
  PTERO_ASSIGN_OR_RETURN(
      const std::string rest,
      digest(fmt::format("version {} context {} max_seq {} weights {} float_head {}",
                         kConverterVersion, options.context.value_or(0), options.max_seq,
                         name_of(options.weights), options.float_head),
             kOptionDigits));
  return content + "-" + rest;
}

std::optional<pte::Program> ProgramCache::find(const std::string& key) const {
  const std::string path = path_of(key + std::string(kProgram));
  Result<ByteSourcePtr> file = map_file(path);
  if (!file.ok()) {
    return std::nullopt;
  }
  Result<pte::Program> program = pte::read_program(ByteRange::whole(*std::move(file)));
  if (!program.ok()) {
    return std::nullopt;
  }
  std::error_code ignored;  // nobody may be able to write there
  fs::last_write_time(fs_path(path), fs::file_time_type::clock::now(), ignored);
  return *std::move(program);
}

Status ProgramCache::store(const std::string& key, const std::string& source,
                           const ByteSource& bytes) const {
  PTERO_REJECT_IF(bytes.size() > limit_, out_of_memory,
                  "The program ({} MiB) is larger than the cache may be ({} MiB).",
                  bytes.size() >> 20, limit_ >> 20);
  std::error_code error;
  fs::create_directories(fs_path(folder_), error);
  PTERO_REJECT_IF(error, io, "The folder {} cannot be made ({}).", folder_, error.message());
  make_room(bytes.size(), key);
  const fs::space_info space = fs::space(fs_path(folder_), error);
  PTERO_REJECT_IF(!error && space.available < bytes.size(), out_of_memory,
                  "The program ({} MiB) does not fit into the free space at {} ({} MiB).",
                  bytes.size() >> 20, folder_, space.available >> 20);
  PTERO_RETURN_IF_ERROR(write_file(path_of(key + std::string(kProgram)), bytes));
  (void)write_text(path_of(key + std::string(kSource)), source).ok();  // only for list()
  return ok_status();
}

void ProgramCache::remove(const std::string& key) const {
  for (const std::string_view extension : {kProgram, kSource}) {
    std::error_code ignored;
    fs::remove(fs_path(path_of(key + std::string(extension))), ignored);
  }
}

// Errors do not matter here: the next program makes room again.
void ProgramCache::make_room(uint64_t bytes, const std::string& keep) const {
  const Result<std::vector<CachedProgram>> programs = list();
  if (!programs.ok()) {
    return;
  }
  uint64_t total = bytes;
  std::set<std::string> contents = {keep.substr(0, kContentDigits)};
  for (const CachedProgram& program : *programs) {
    const std::string key = key_of(fs_path(program.path));
    total += key == keep ? 0 : program.bytes;
    if (total > limit_ && key != keep) {
      remove(key);
    } else {
      contents.insert(key.substr(0, kContentDigits));
    }
  }
  std::vector<fs::path> surplus;
  (void)for_each_file(folder_, [&](const fs::directory_entry& entry) {
    std::error_code error;
    const fs::path& path = entry.path();
    if (path.extension() == ".part") {
      const fs::file_time_type written = entry.last_write_time(error);
      if (!error && to_system(written) + kAbandoned < system_clock::now()) {
        surplus.push_back(path);
      }
    } else if (path.extension() == kStamp && !contents.contains(read_text(utf8_of(path)))) {
      surplus.push_back(path);
    }
  }).ok();
  for (const fs::path& path : surplus) {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
}

namespace {

void say(const OpenEvents& events, const std::string& sentence) {
  if (events.note) {
    events.note(sentence);
  }
}

// Whether the cache has the program now.
Result<bool> keep(const ProgramCache& cache, const std::string& key, const std::string& path,
                  const pte::Program& program, const OpenEvents& events) {
  PTERO_ASSIGN_OR_RETURN(ByteSourcePtr bytes, pte::assemble_program(program));
  if (events.watch) {
    bytes = events.watch(std::move(bytes));
  }
  std::error_code ignored;
  const fs::path whole = fs::absolute(fs_path(path), ignored);
  const Status stored = cache.store(key, utf8_of(whole), *bytes);
  if (stored.ok()) {
    return true;
  }
  const ErrorCode code = stored.error().code();
  if (code != ErrorCode::io && code != ErrorCode::out_of_memory) {
    return stored.error();
  }
  std::string reason = stored.error().message();
  reason.pop_back();  // the full stop
  say(events,
      fmt::format("The converted program is not kept, so the next start converts again: {}.",
                  reason));
  return false;
}

}  // namespace

Result<pte::Program> open_gguf(const std::string& path, const ConvertOptions& options,
                               const ProgramCache* cache, const OpenEvents& events) {
  PTERO_ASSIGN_OR_RETURN(const FileStamp before, file_stamp(path));
  std::string key;
  if (cache != nullptr) {
    PTERO_ASSIGN_OR_RETURN(key, cache->key(path, options));
    if (std::optional<pte::Program> program = cache->find(key)) {
      return *std::move(program);
    }
  }
  PTERO_ASSIGN_OR_RETURN(const ByteSourcePtr source, map_file(path));
  PTERO_ASSIGN_OR_RETURN(const gguf::File file, gguf::read_gguf(ByteRange::whole(source)),
                         "while reading {}", path);
  PTERO_ASSIGN_OR_RETURN(ConvertedProgram converted, convert_gguf(file, options),
                         "while converting {}", path);
  for (const std::string& sentence : converted.report.notes) {
    say(events, sentence);
  }
  const auto rounded = std::ranges::count_if(
      converted.report.weights,
      [](const ConvertedWeight& weight) { return !weight.exact && weight.to == "4-bit"; });
  if (rounded > 0) {
    say(events, fmt::format("{} of {} weights are rounded to 4 bits.", rounded,
                            converted.report.weights.size()));
  }
  if (events.on_convert) {
    events.on_convert();
  }
  if (cache == nullptr) {
    return std::move(converted.program);
  }
  PTERO_ASSIGN_OR_RETURN(const bool kept, keep(*cache, key, path, converted.program, events));
  PTERO_ASSIGN_OR_RETURN(const FileStamp after, file_stamp(path));
  if (after.text != before.text) {
    cache->remove(key);
    return make_error(ErrorCode::io, "The file {} changes while it is read.", path);
  }
  if (kept) {
    if (events.on_kept) {
      events.on_kept();
    }
    if (std::optional<pte::Program> program = cache->find(key)) {
      return *std::move(program);
    }
  }
  return std::move(converted.program);
}

}  // namespace ptero::convert
