// SPDX-License-Identifier: BSD-3-Clause
// Private to src/convert: a model's numbers and weights -> the graph of one step.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "convert/convert.h"
#include "convert/model_config.h"
#include "convert/weight.h"
#include "pte/graph.h"

namespace ptero::convert {

struct ModelGraph {
  pte::Graph graph;
  std::vector<std::pair<std::string, ByteRange>> named_data;
  std::vector<ConvertedWeight> weights;
  bool tied = false;
};

// Inputs: tokens int32 [1, S], position int32 [1]; output: logits [1, vocabulary].
Result<ModelGraph> make_model_graph(const ModelConfig& config, const ConvertOptions& options,
                                    WeightSet& weights);

}  // namespace ptero::convert
