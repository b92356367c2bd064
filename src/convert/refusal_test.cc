// SPDX-License-Identifier: BSD-3-Clause
// What is not converted, and the sentence for each.
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "convert/convert.h"
#include "convert/test_model.h"
#include "gguf/reader.h"

namespace ptero::convert {
namespace {

using test::TensorType;
using test::TestFile;
using test::TestModel;

struct Refusal {
  const char* name;
  void (*change)(TestModel&);  // after make()
  const char* sentence;
  ErrorCode code = ErrorCode::unsupported;
};

// Takes the key away that begins with these bytes.
void drop_key(TestModel& model, std::string_view name) {
  std::erase_if(model.file.keys, [&](const test::Bytes& key) {
    return std::string_view(reinterpret_cast<const char*>(key.data()) + 8, name.size()) == name &&
           std::to_integer<size_t>(key[0]) == name.size();
  });
}
void drop_tensor(TestModel& model, std::string_view name) {
  std::erase_if(model.file.tensors, [&](const test::Bytes& info) {
    return std::string_view(reinterpret_cast<const char*>(info.data()) + 8, name.size()) == name;
  });
}
void replace_u32(TestModel& model, std::string_view name, uint32_t value) {
  drop_key(model, name);
  model.file.u32(name, value);
}

constexpr auto kWrong = ErrorCode::invalid_program;

const Refusal kRefusals[] = {
    {"another architecture",
     [](TestModel& m) {
       drop_key(m, "general.architecture");
       m.file.text("general.architecture", "gemma3");
     },
     "The architecture \"gemma3\" cannot be converted; these can: llama, qwen2, qwen3."},
    {"no architecture", [](TestModel& m) { drop_key(m, "general.architecture"); },
     "The key general.architecture is missing.", kWrong},
    {"an adapter", [](TestModel& m) { m.file.text("general.type", "adapter"); },
     "The GGUF file holds no model (general.type is \"adapter\")."},
    {"a split model",
     [](TestModel& m) { m.file.number("split.count", gguf::ValueType::uint16, uint16_t{3}); },
     "The model is split into 3 files (split.count), which cannot be converted; merge them first."},
    {"experts", [](TestModel& m) { m.file.u32("llama.expert_count", 8); },
     "The model mixes 8 experts (llama.expert_count), which cannot be converted."},
    {"attention to what follows",
     [](TestModel& m) { m.file.boolean("llama.attention.causal", false); },
     "The model's attention is not causal (llama.attention.causal), which cannot be converted."},
    {"a factor of the logits", [](TestModel& m) { m.file.f32("llama.logit_scale", 0.5f); },
     "The model has a factor (llama.logit_scale is 0.5), which cannot be converted."},
    {"YaRN", [](TestModel& m) { m.file.text("llama.rope.scaling.type", "yarn"); },
     "The model scales positions by \"yarn\" (llama.rope.scaling.type), which cannot be "
     "converted."},
    {"factors by length",
     [](TestModel& m) {
       m.file.tensor("rope_factors_long.weight", {8}, std::vector<float>(8, 1.0f));
     },
     "The model has factors of positions by length (rope_factors_long.weight), which cannot be "
     "converted."},
    {"a sliding window", [](TestModel& m) { m.file.u32("llama.attention.sliding_window", 32); },
     "The model sees only the last 32 positions (llama.attention.sliding_window), fewer than the "
     "context (64); choose a context of at most 32."},
    {"layers that differ",
     [](TestModel& m) {
       drop_key(m, "llama.attention.head_count_kv");
       m.file.numbers<int32_t>("llama.attention.head_count_kv", gguf::ValueType::int32, {2, 4});
     },
     "The value of llama.attention.head_count_kv differs between layers (2 and 4), which cannot be "
     "converted."},
    {"values of another size", [](TestModel& m) { m.file.u32("llama.attention.value_length", 8); },
     "The sizes of keys (16) and values (8) differ, which cannot be converted."},
    {"heads of 6", [](TestModel& m) { m.file.u32("llama.attention.key_length", 6); },
     "The size of a head (6) is no multiple of 4, which cannot be converted."},
    {"a tensor too many",
     [](TestModel& m) {
       m.file.tensor("blk.0.post_norm.weight", {64}, std::vector<float>(64, 1.0f));
     },
     "The tensor blk.0.post_norm.weight has no place in this architecture, which cannot be "
     "converted without it."},
    {"a type that is not read",
     [](TestModel& m) {
       drop_tensor(m, "blk.1.attn_k.weight");
       m.file.tensor("blk.1.attn_k.weight", {64, 32}, TensorType::iq4_nl, test::Bytes(64 * 18));
     },
     "The tensor blk.1.attn_k.weight has the type IQ4_NL, which cannot be converted."},
    {"rows of 4-bit weights that are no groups",
     [](TestModel& m) {
       m.type = TensorType::f32;
       m.ffn_width = 80;
       m.file = {};
       m.make();
     },
     "The rows of blk.0.ffn_down.weight (80 elements) are no whole groups of 32, as 4-bit weights "
     "need; choose f32 or f16 weights."},
    {"no layers", [](TestModel& m) { drop_key(m, "llama.block_count"); },
     "The key llama.block_count is missing.", kWrong},
    {"zero layers", [](TestModel& m) { replace_u32(m, "llama.block_count", 0); },
     "The value of llama.block_count (0) does not lie between 1 and 4096.", kWrong},
    {"2^32 - 1 layers", [](TestModel& m) { replace_u32(m, "llama.block_count", UINT32_MAX); },
     "The value of llama.block_count (4294967295) does not lie between 1 and 4096.", kWrong},
    {"a layer more than there is", [](TestModel& m) { replace_u32(m, "llama.block_count", 3); },
     "The tensor blk.2.attn_norm.weight is missing.", kWrong},
    {"a layer less than there is", [](TestModel& m) { replace_u32(m, "llama.block_count", 1); },
     "The tensor blk.1.attn_norm.weight has no place in this architecture, which cannot be "
     "converted without it."},
    {"heads that do not divide",
     [](TestModel& m) { replace_u32(m, "llama.attention.head_count_kv", 3); },
     "The number of heads (4) is no multiple of the key-value heads (3).", kWrong},
    {"a width that heads do not divide",
     [](TestModel& m) { replace_u32(m, "llama.embedding_length", 66); },
     "The width (66) is no multiple of the number of heads (4).", kWrong},
    {"heads that are too large together",
     [](TestModel& m) {
       replace_u32(m, "llama.attention.head_count", 1u << 16);
       m.file.u32("llama.attention.key_length", 1u << 16);
       m.file.u32("llama.attention.value_length", 1u << 16);
     },
     "The heads (65536 of 65536) together exceed the limit (1048576).", kWrong},
    {"no number of heads",
     [](TestModel& m) {
       drop_key(m, "llama.attention.head_count_kv");
       m.file.numbers<int32_t>("llama.attention.head_count_kv", gguf::ValueType::int32, {});
     },
     "The value of llama.attention.head_count_kv has no elements.", kWrong},
    {"negative numbers of heads",
     [](TestModel& m) {
       drop_key(m, "llama.attention.head_count_kv");
       m.file.numbers<int32_t>("llama.attention.head_count_kv", gguf::ValueType::int32, {-2, -2});
     },
     "The value of llama.attention.head_count_kv (-2) is negative.", kWrong},
    {"numbers of heads for 5000 layers",
     [](TestModel& m) {
       drop_key(m, "llama.attention.head_count_kv");
       m.file.numbers<int32_t>("llama.attention.head_count_kv", gguf::ValueType::int32,
                               std::vector<int32_t>(5000, 2));
     },
     "The number of elements (5000) of llama.attention.head_count_kv exceeds the limit (4096).",
     kWrong},
    {"an embedding that is a vector",
     [](TestModel& m) {
       drop_tensor(m, "token_embd.weight");
       m.file.tensor("token_embd.weight", {64}, std::vector<float>(64, 1.0f));
     },
     "The rows of token_embd.weight (0) do not lie between 1 and 16777216.", kWrong},
    {"no epsilon", [](TestModel& m) { drop_key(m, "llama.attention.layer_norm_rms_epsilon"); },
     "The key llama.attention.layer_norm_rms_epsilon is missing.", kWrong},
    {"a negative epsilon",
     [](TestModel& m) {
       drop_key(m, "llama.attention.layer_norm_rms_epsilon");
       m.file.f32("llama.attention.layer_norm_rms_epsilon", -1.0f);
     },
     "The value of llama.attention.layer_norm_rms_epsilon (-1) does not lie between 0 and 1.",
     kWrong},
    {"more rotated than a head has",
     [](TestModel& m) { m.file.u32("llama.rope.dimension_count", 18); },
     "The value of llama.rope.dimension_count (18) is odd, or exceeds the size of a head (16).",
     kWrong},
    {"a base of zero",
     [](TestModel& m) {
       drop_key(m, "llama.rope.freq_base");
       m.file.f32("llama.rope.freq_base", 0.0f);
     },
     "The value of llama.rope.freq_base (0) is not above 0.", kWrong},
    {"linear scaling without a factor",
     [](TestModel& m) { m.file.text("llama.rope.scaling.type", "linear"); },
     "The value of llama.rope.scaling.factor (0) is not above 0.", kWrong},
    {"factors of another number",
     [](TestModel& m) { m.file.tensor("rope_freqs.weight", {4}, {1, 1, 1, 1}); },
     "The tensor rope_freqs.weight has 4 elements of F32 instead of 8 of F32.", kWrong},
    {"a factor of zero",
     [](TestModel& m) { m.file.tensor("rope_freqs.weight", {8}, {1, 1, 1, 0, 1, 1, 1, 1}); },
     "Element 3 (0) of rope_freqs.weight is not above 0.", kWrong},
    {"no embedding", [](TestModel& m) { drop_tensor(m, "token_embd.weight"); },
     "The tensor token_embd.weight is missing.", kWrong},
    {"another shape",
     [](TestModel& m) {
       drop_tensor(m, "blk.0.ffn_norm.weight");
       m.file.tensor("blk.0.ffn_norm.weight", {32}, std::vector<float>(32, 1.0f));
     },
     "The tensor blk.0.ffn_norm.weight has the dimensions [32] instead of [64], innermost first.",
     kWrong},
    {"a transposed matrix",
     [](TestModel& m) {
       drop_tensor(m, "blk.0.ffn_up.weight");
       m.file.tensor("blk.0.ffn_up.weight", {96, 64}, std::vector<float>(96 * 64, 1.0f));
     },
     "The tensor blk.0.ffn_up.weight has the dimensions [96, 64] instead of [64, 96], innermost "
     "first.",
     kWrong},
    {"a width that no tensor has",
     [](TestModel& m) { replace_u32(m, "llama.feed_forward_length", 128); },
     "The tensor blk.0.ffn_gate.weight has the dimensions [64, 96] instead of [64, 128], innermost "
     "first.",
     kWrong},
};

TEST_CASE("each refusal has its sentence") {
  std::set<std::string> names;
  for (const Refusal& refusal : kRefusals) {
    CAPTURE(std::string(refusal.name));
    CHECK(names.insert(refusal.name).second);
    TestModel model;
    model.make();
    refusal.change(model);
    const Result<gguf::File> file = gguf::read_gguf(model.file.range());
    REQUIRE_MESSAGE(file.ok(), file.error().to_string());
    const Result<ConvertedProgram> result = convert_gguf(*file, {});
    REQUIRE(!result.ok());
    CHECK(result.error().message() == std::string(refusal.sentence));
    CHECK(result.error().code() == refusal.code);
  }
}

TEST_CASE("a sliding window as long as the context is none") {
  TestModel model;
  model.make();
  model.file.u32("llama.attention.sliding_window", 32);
  const gguf::File file = *gguf::read_gguf(model.file.range());
  CHECK(convert_gguf(file, {.context = 32}).ok());
  CHECK(!convert_gguf(file, {.context = 33}).ok());
}

}  // namespace
}  // namespace ptero::convert
