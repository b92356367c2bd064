// SPDX-License-Identifier: BSD-3-Clause
// GGUF files where a .pte is expected, and the folder that keeps the programs made of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "convert/program_cache.h"
#include "pte/program.h"

namespace ptero::cli {

// q4, f16 or f32; another name is an error that lists them.
Result<convert::WeightFormat> weight_format(const std::string& name);

struct CacheFlags {
  std::string folder;          // --cache, PTERO_CACHE; empty: the user's; "none": no cache
  std::string limit = "32GB";  // --cache-limit, PTERO_CACHE_LIMIT
};
void add_cache_flags(CLI::App& command, CacheFlags& flags);

// Nothing when there is to be none. Code invalid_argument for a limit that is no size, unsupported
// when the environment does not tell the user's folder.
Result<std::optional<convert::ProgramCache>> open_cache(const CacheFlags& flags);

// Whether the file begins as a GGUF file does. Code io.
Result<bool> is_gguf_file(const std::string& path);

// The program of a GGUF file, from the cache or converted; says so on stderr. Ctrl-C ends it
// (catch_interrupts()).
Result<pte::Program> open_gguf_model(const std::string& path,
                                     const convert::ConvertOptions& options,
                                     const CacheFlags& flags);

}  // namespace ptero::cli
