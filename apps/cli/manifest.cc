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
    for (const json& step : each.at("steps")) {
      PTERO_ASSIGN_OR_RETURN(StepEntry read, read_step(step, folder));
      sequence.steps.push_back(std::move(read));
    }
    model.sequences.push_back(std::move(sequence));
  }
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
