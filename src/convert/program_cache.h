// SPDX-License-Identifier: BSD-3-Clause
// Converted programs kept in a folder, so that a GGUF file is converted once
// (docs/decisions/070-converted-programs-are-kept.md).
//
// Programs are named by the content of the file that they are made from, by the converter's version
// and by its options. Any number of processes may use a folder at once: files appear whole, and
// what another process takes away is only made again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "convert/convert.h"
#include "pte/program.h"

namespace ptero::convert {

struct CachedProgram {
  std::string path;
  std::string source;  // what it was made from, as it was named then
  uint64_t bytes = 0;
  std::chrono::system_clock::time_point used;  // last
};

class ProgramCache {
 public:
  // `folder` is made when it is needed; beyond `limit` bytes the programs that were not used for
  // longest go.
  ProgramCache(std::string folder, uint64_t limit) : folder_(std::move(folder)), limit_(limit) {}

  const std::string& folder() const { return folder_; }
  uint64_t limit() const { return limit_; }

  // Last used first; nothing when there is no folder. Code io.
  Result<std::vector<CachedProgram>> list() const;
  // Takes all programs away and returns how many bytes they had. Other files stay. Code io.
  Result<uint64_t> clear() const;

  // The name of the program that `options` make of the file: reads all of it, unless it is known
  // and has not changed since. Code io.
  Result<std::string> key(const std::string& gguf_path, const ConvertOptions& options) const;
  // The program of that name, marked as used. Nothing when there is none that can be read.
  std::optional<pte::Program> find(const std::string& key) const;
  // Keeps `bytes` and makes room. Code io (nothing is left then), out_of_memory when the program is
  // larger than the limit or the disk's free space, and errors of `bytes`.
  Status store(const std::string& key, const std::string& source, const ByteSource& bytes) const;
  void remove(const std::string& key) const;

 private:
  std::string path_of(const std::string& name) const { return folder_ + "/" + name; }
  void make_room(uint64_t bytes, const std::string& keep) const;

  std::string folder_;
  uint64_t limit_;
};

// What a front end hears and steers while a file is opened. All may be empty.
struct OpenEvents {
  // The conversion begins, for the cache if there is one; and its result is there.
  std::function<void()> on_convert;
  std::function<void()> on_kept;
  // Wraps the bytes that are written to the cache: to show progress, or to stop.
  std::function<ByteSourcePtr(ByteSourcePtr)> watch;
  // A sentence for the user: why the program is not kept, or what the conversion left out.
  std::function<void(const std::string& sentence)> note;
};

// The program of a GGUF file: from the cache, or converted and put there. Where that fails, and
// without a cache, its weights are converted as they are read. Code io when the file changes
// meanwhile, otherwise the errors of read_gguf() and convert_gguf().
Result<pte::Program> open_gguf(const std::string& path, const ConvertOptions& options,
                               const ProgramCache* cache, const OpenEvents& events = {});

}  // namespace ptero::convert
