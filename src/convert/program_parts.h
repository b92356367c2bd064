// SPDX-License-Identifier: BSD-3-Clause
// Private to src/convert: a graph -> the program around it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "convert/model_config.h"
#include "convert/model_graph.h"
#include "pte/program.h"

namespace ptero::convert {

struct TokenIds {
  std::optional<uint32_t> bos;
  std::vector<uint32_t> ends;
};

// The method forward, the constant methods and the named data of the graph, then `texts` by key.
Result<pte::Program> make_program(const ModelConfig& config, const ModelGraph& model,
                                  bool half_precision, const TokenIds& tokens,
                                  std::vector<std::pair<std::string, std::string>> texts);

}  // namespace ptero::convert
