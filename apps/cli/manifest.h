// SPDX-License-Identifier: BSD-3-Clause
// manifest.json: test models with their inputs and expected outputs (tools/export/README.md).
// greedy.json: {"version": 1, "pte", "greedy": [{"name", "prompt_ids", "greedy_ids", "top5"}]}.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
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
  // A control: what is expected is what a certain fault would give, so an output must differ.
  bool differs = false;
  std::vector<StepEntry> steps;
};

// Text that greedy decoding must repeat: a language model's prompt, the ids that follow, and the
// largest logits before each of them, in falling order.
struct GreedyEntry {
  std::string name;
  std::vector<int64_t> prompt;
  std::vector<int64_t> ids;
  std::vector<std::vector<std::pair<int64_t, double>>> top;  // id and logit
};

struct ModelEntry {
  std::string name;
  std::string pte;
  Tolerance tolerance;
  bool copies_only = false;  // nothing is computed, so no dispatch is expected
  std::vector<SequenceEntry> sequences;
  std::vector<GreedyEntry> greedy;  // instead of sequences
};

// Also reads a greedy.json, as one model. Paths come out relative to the manifest's folder.
Result<std::vector<ModelEntry>> read_manifest(const std::string& path);

}  // namespace ptero::cli
