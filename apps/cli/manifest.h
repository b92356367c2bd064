// SPDX-License-Identifier: BSD-3-Clause
// manifest.json: test models with their inputs and expected outputs (tools/export/README.md).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/tensor_file.h"
#include "graph/shape.h"

namespace ptero::cli {

struct TensorEntry {
  std::string path;
  pte::ScalarType type = pte::ScalarType::float32;
  graph::Shape shape;
};

struct StepEntry {
  std::vector<TensorEntry> inputs;
  std::vector<TensorEntry> outputs;
};

// Starts from a fresh state, which its steps pass on.
struct SequenceEntry {
  std::string name;
  std::vector<StepEntry> steps;
};

struct ModelEntry {
  std::string name;
  std::string pte;
  Tolerance tolerance;
  bool copies_only = false;  // nothing is computed, so no dispatch is expected
  std::vector<SequenceEntry> sequences;
};

// Paths come out relative to the manifest's folder.
Result<std::vector<ModelEntry>> read_manifest(const std::string& path);

}  // namespace ptero::cli
