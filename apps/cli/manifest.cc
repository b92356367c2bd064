// SPDX-License-Identifier: BSD-3-Clause
#include "cli/manifest.h"

#include <exception>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

namespace ptero::cli {
namespace {

using nlohmann::json;

// Throws json's exceptions; read_manifest() catches them.
Result<TensorEntry> read_tensor_entry(const json& entry, const std::filesystem::path& folder) {
  TensorEntry tensor;
  tensor.path = (folder / entry.at("file").get<std::string>()).string();
  PTERO_ASSIGN_OR_RETURN(tensor.type, parse_type(entry.at("dtype").get<std::string>()));
  PTERO_ASSIGN_OR_RETURN(tensor.shape,
                         graph::Shape::from(entry.at("shape").get<std::vector<uint32_t>>()));
  return tensor;
}

Result<StepEntry> read_step(const json& entry, const std::filesystem::path& folder) {
  StepEntry step;
  for (const json& input : entry.at("inputs")) {
    PTERO_ASSIGN_OR_RETURN(TensorEntry tensor, read_tensor_entry(input, folder));
    step.inputs.push_back(std::move(tensor));
  }
  for (const json& output : entry.at("outputs")) {
    PTERO_ASSIGN_OR_RETURN(TensorEntry tensor, read_tensor_entry(output, folder));
    step.outputs.push_back(std::move(tensor));
  }
  return step;
}

Result<ModelEntry> read_model(const json& entry, const std::filesystem::path& folder) {
  ModelEntry model;
  model.name = entry.at("name").get<std::string>();
  model.pte = (folder / entry.at("pte").get<std::string>()).string();
  model.tolerance = {entry.at("atol").get<double>(), entry.at("rtol").get<double>()};
  model.copies_only = entry.value("copies_only", false);
  for (const json& each : entry.at("sequences")) {
    SequenceEntry sequence;
    sequence.name = each.at("name").get<std::string>();
    if (const std::string expect = each.value("expect", "equal"); expect != "equal") {
      PTERO_REJECT_IF(expect != "differs", unsupported,
                      "Sequence ({}) expects something unknown ({}).", sequence.name, expect);
      sequence.differs = true;
    }
    for (const json& step : each.at("steps")) {
      PTERO_ASSIGN_OR_RETURN(StepEntry read, read_step(step, folder));
      sequence.steps.push_back(std::move(read));
    }
    model.sequences.push_back(std::move(sequence));
  }
  return model;
}

// Throws json's exceptions too.
Result<ModelEntry> read_greedy(const json& root, const std::filesystem::path& folder) {
  ModelEntry model;
  const std::string pte = root.at("pte").get<std::string>();
  model.name = std::filesystem::path(pte).stem().string();
  model.pte = (folder / pte).string();
  for (const json& each : root.at("greedy")) {
    GreedyEntry entry;
    entry.name = each.at("name").get<std::string>();
    entry.prompt = each.at("prompt_ids").get<std::vector<int64_t>>();
    entry.ids = each.at("greedy_ids").get<std::vector<int64_t>>();
    entry.top = each.at("top5").get<decltype(entry.top)>();
    bool complete =
        !entry.prompt.empty() && !entry.ids.empty() && entry.top.size() == entry.ids.size();
    for (const auto& top : entry.top) {
      complete = complete && top.size() >= 2;
    }
    PTERO_REJECT_IF(!complete, invalid_argument,
                    "Text ({}) lacks a prompt, ids, or two logits for each id.", entry.name);
    model.greedy.push_back(std::move(entry));
  }
  PTERO_REJECT_IF(model.greedy.empty(), invalid_argument, "There is no text to repeat.");
  return model;
}

}  // namespace

Result<std::vector<ModelEntry>> read_manifest(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  PTERO_REJECT_IF(!file, io, "Manifest ({}) cannot be opened.", path);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::vector<ModelEntry> models;
  try {
    const json root = json::parse(file);
    const int version = root.at("version").get<int>();
    PTERO_REJECT_IF(version != 1, unsupported, "Version ({}) of manifest ({}) is not 1.", version,
                    path);
    if (root.contains("greedy")) {
      PTERO_ASSIGN_OR_RETURN(ModelEntry model, read_greedy(root, folder), "while reading {}", path);
      return std::vector<ModelEntry>{std::move(model)};
    }
    for (const json& entry : root.at("models")) {
      PTERO_ASSIGN_OR_RETURN(ModelEntry model, read_model(entry, folder), "while reading {}", path);
      models.push_back(std::move(model));
    }
  } catch (const std::exception& error) {
    return make_error(ErrorCode::invalid_argument, "Manifest ({}) is not what it should be: {}.",
                      path, error.what());
  }
  PTERO_REJECT_IF(models.empty(), invalid_argument, "Manifest ({}) lists no models.", path);
  return models;
}

}  // namespace ptero::cli
