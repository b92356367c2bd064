// SPDX-License-Identifier: BSD-3-Clause
// A file for inspect, read as far as its kind allows: nothing here needs a GPU or reads weights.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "pte/bundled_program.h"
#include "pte/data_map.h"
#include "pte/flat_tensor.h"
#include "pte/graph.h"
#include "pte/program.h"

namespace ptero::inspect {

struct LoadedDelegate {
  uint64_t bytes = 0;               // of the blob
  std::optional<pte::Graph> graph;  // set for Vulkan delegates
  uint64_t inline_constant_bytes = 0;
};

struct LoadedProgram {
  pte::Program program;
  pte::DataMap data;                                   // the program's own and that of `data_files`
  std::vector<std::vector<LoadedDelegate>> delegates;  // [plan][delegate], like the program's
};

// One of `program` and `tensors` is set; `bundle` comes with `program`.
struct LoadedFile {
  std::string path;
  uint64_t bytes = 0;
  std::optional<LoadedProgram> program;
  std::optional<pte::BundledProgram> bundle;
  std::optional<pte::FlatTensor> tensors;
};

// Reads a .pte, .bpte or .ptd; `data_files` are .ptd files with weights that a program keeps
// outside of itself. One sentence for every file that is none of these or is damaged.
Result<LoadedFile> load_file(const std::string& path, const std::vector<std::string>& data_files);

// The same from bytes, for tests.
Result<LoadedFile> load_bytes(ByteSourcePtr source, const std::vector<ByteSourcePtr>& data_files);

}  // namespace ptero::inspect
