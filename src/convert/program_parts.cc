// SPDX-License-Identifier: BSD-3-Clause
#include "convert/program_parts.h"

#include <variant>

#include "base/byte_source.h"
#include "pte/delegate_writer.h"

namespace ptero::convert {
namespace {

// PyTree descriptions, as the exporter writes them.
constexpr std::string_view kLeaf = R"({"type": null, "context": null, "children_spec": []})";

std::string tree_of(std::string_view spec) {
  return fmt::format("[1, {}]", spec);
}

std::string node(std::string_view type, std::string_view context, std::string_view children) {
  return fmt::format(R"({{"type": "builtins.{}", "context": "{}", "children_spec": [{}]}})", type,
                     context, children);
}

pte::Tensor tensor(pte::ScalarType type, std::vector<int32_t> sizes, pte::ShapeDynamism dynamism) {
  pte::Tensor tensor;
  tensor.scalar_type = type;
  for (size_t i = 0; i < sizes.size(); ++i) {
    tensor.dim_order.push_back(static_cast<uint8_t>(i));
  }
  tensor.sizes = std::move(sizes);
  tensor.dynamism = dynamism;
  return tensor;
}

// forward((tokens, {"input_pos": position})) -> logits
pte::ExecutionPlan forward_plan(const ModelConfig& config, bool half_precision, uint32_t segment) {
  using pte::ScalarType;
  using pte::ShapeDynamism;
  pte::ExecutionPlan plan;
  plan.name = "forward";
  const std::string by_name = node("dict", R"([\"input_pos\"])", kLeaf);
  const std::string arguments =
      node("tuple", "null", fmt::format("{}, {}", kLeaf, by_name)) + ", " + node("dict", "[]", "");
  plan.container = {tree_of(node("tuple", "null", arguments)), tree_of(kLeaf)};
  const auto bound = static_cast<int32_t>(config.max_seq);
  const auto vocabulary = static_cast<int32_t>(config.vocabulary);
  plan.values = {tensor(ScalarType::int64, {1, bound}, ShapeDynamism::bounded),
                 tensor(ScalarType::int64, {1}, ShapeDynamism::fixed)};
  pte::Tensor logits = tensor(ScalarType::float32, {1, vocabulary}, ShapeDynamism::fixed);
  logits.allocation = pte::Allocation{.memory_id = 1, .offset = 0};
  plan.values.emplace_back(std::move(logits));
  plan.inputs = {0, 1};
  plan.outputs = {2};
  plan.chains.push_back({{}, {}, {pte::DelegateCall{0, {0, 1, 2}}}, {}});
  pte::BackendDelegate delegate;
  delegate.id = std::string(pte::kVulkanBackendId);
  delegate.index = segment;
  delegate.compile_specs = {{"require_dynamic_shapes", {std::byte{1}}},
                            {"force_fp16", {half_precision ? std::byte{1} : std::byte{0}}}};
  plan.delegates.push_back(std::move(delegate));
  plan.non_const_buffer_sizes = {0, uint64_t{config.vocabulary} * sizeof(float)};
  return plan;
}

// A method without inputs that returns `values`.
pte::ExecutionPlan constant_plan(std::string name, std::vector<pte::Value> values, bool is_list) {
  pte::ExecutionPlan plan;
  plan.name = std::move(name);
  std::string leaves;
  for (size_t i = 0; i < values.size(); ++i) {
    leaves += (i == 0 ? "" : ", ") + std::string(kLeaf);
    plan.outputs.push_back(static_cast<uint32_t>(i));
  }
  plan.container = {"", tree_of(is_list ? node("list", "null", leaves) : leaves)};
  plan.values = std::move(values);
  plan.chains.emplace_back();
  plan.non_const_buffer_sizes = {0};
  return plan;
}

ByteRange text_bytes(const std::string& text, std::string name) {
  const auto bytes = std::as_bytes(std::span(text));
  return ByteRange::whole(own_bytes({bytes.begin(), bytes.end()}, std::move(name)));
}

}  // namespace

Result<pte::Program> make_program(const ModelConfig& config, const ModelGraph& model,
                                  bool half_precision, const TokenIds& tokens,
                                  std::vector<std::pair<std::string, std::string>> texts) {
  pte::Program program;
  PTERO_ASSIGN_OR_RETURN(ByteSourcePtr blob, pte::assemble_delegate(model.graph));
  program.segments = {ByteRange(), ByteRange::whole(std::move(blob))};
  program.constant_segment = pte::SubsegmentOffsets{0, {0}};
  program.plans.push_back(forward_plan(config, half_precision, 1));
  const auto add_constant = [&](const char* name, pte::Value value) {
    program.plans.push_back(constant_plan(name, {std::move(value)}, false));
  };
  add_constant("get_max_seq_len", int64_t{config.max_seq});
  add_constant("get_max_context_len", int64_t{config.context});
  add_constant("get_trained_context_len", int64_t{config.largest_context});
  add_constant("get_n_layers", int64_t{config.layers});
  add_constant("get_vocab_size", int64_t{config.vocabulary});
  add_constant("use_kv_cache", true);
  add_constant("use_sdpa_with_kv_cache", true);
  add_constant("enable_dynamic_shape", true);
  add_constant("enable_f16_gemm", true);  // read by llm::read_metadata()
  if (tokens.bos) {
    add_constant("get_bos_id", int64_t{*tokens.bos});
  }
  if (!tokens.ends.empty()) {
    std::vector<pte::Value> ids;
    for (const uint32_t id : tokens.ends) {
      ids.emplace_back(int64_t{id});
    }
    program.plans.push_back(constant_plan("get_eos_ids", std::move(ids), true));
  }
  const auto add_named = [&](std::string key, ByteRange bytes) {
    program.named_data.push_back({std::move(key), static_cast<uint32_t>(program.segments.size())});
    program.segments.push_back(std::move(bytes));
  };
  for (const auto& [key, bytes] : model.named_data) {
    add_named(key, bytes);
  }
  for (auto& [key, text] : texts) {
    add_named(key, text_bytes(text, key));
  }
  return program;
}

}  // namespace ptero::convert
