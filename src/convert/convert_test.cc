// SPDX-License-Identifier: BSD-3-Clause
#include "convert/convert.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "base/composed_source.h"
#include "convert/test_model.h"
#include "gguf/reader.h"
#include "pte/data_map.h"
#include "pte/delegate_reader.h"
#include "pte/graph_reader.h"
#include "pte/memory_meter.h"
#include "pte/program_reader.h"
#include "pte/program_writer.h"

namespace ptero::convert {
namespace {

using test::Bytes;
using test::TensorType;
using test::TestFile;
using test::TestModel;

template <typename T>
T must(Result<T> result) {
  REQUIRE_MESSAGE(result.ok(), result.error().to_string());
  return std::move(result).value();
}

// As a reader finds it in the bytes.
struct Read {
  pte::Program program;
  pte::DataMap data;
  pte::Graph graph;
  ConvertReport report;

  const pte::GraphTensor& tensor(uint32_t id) const {
    return std::get<pte::GraphTensor>(graph.values[id]);
  }
  const pte::OperatorCall& call(std::string_view name, size_t index = 0) const {
    for (const pte::OperatorCall& call : graph.chain) {
      if (call.name == name && index-- == 0) {
        return call;
      }
    }
    FAIL("no such call");
    return graph.chain[0];
  }
  const pte::GraphConstant& constant(uint32_t id) const {
    return graph.constants[*tensor(id).constant_id];
  }
  size_t count(std::string_view name) const {
    return static_cast<size_t>(std::ranges::count(graph.chain, name, &pte::OperatorCall::name));
  }
};

Read read_back(const ConvertedProgram& converted) {
  Read read;
  const ByteSourcePtr bytes = must(pte::assemble_program(converted.program));
  read.program = must(pte::read_program(ByteRange::whole(bytes)));
  REQUIRE(read.data.add(read.program).ok());
  const auto& delegate = read.program.plans[0].delegates.at(0);
  const pte::Delegate parts = must(pte::read_delegate(delegate_bytes(read.program, delegate)));
  read.graph = must(pte::read_graph(parts, read.data));
  read.report = converted.report;
  return read;
}

Result<ConvertedProgram> convert_file(const TestFile& made, const ConvertOptions& options = {}) {
  PTERO_ASSIGN_OR_RETURN(const gguf::File file, gguf::read_gguf(made.range()));
  return convert_gguf(file, options);
}

Read converted(TestModel model, const ConvertOptions& options = {}) {
  model.make();
  return read_back(must(convert_file(model.file, options)));
}

int64_t constant_method(const Read& read, std::string_view name) {
  const pte::ExecutionPlan* plan = pte::find_plan(read.program, name);
  REQUIRE(plan != nullptr);
  const pte::Value& value = plan->values.at(0);
  const auto* truth = std::get_if<bool>(&value);
  return truth != nullptr ? int64_t{*truth} : std::get<int64_t>(value);
}

TEST_CASE("the methods of an exported language model") {
  TestModel model;
  model.make();
  model.file.text("tokenizer.ggml.model", "gpt2");
  model.file.text("tokenizer.ggml.pre", "smollm");
  model.file.strings("tokenizer.ggml.tokens", {"a", "<|im_end|>", "<|endoftext|>"});
  model.file.numbers<int32_t>("tokenizer.ggml.token_type", gguf::ValueType::int32, {1, 3, 3});
  model.file.strings("tokenizer.ggml.merges", {});
  model.file.u32("tokenizer.ggml.bos_token_id", 2);
  model.file.u32("tokenizer.ggml.eos_token_id", 1);
  model.file.text("tokenizer.chat_template", "{{ x }}");
  const Read read = read_back(must(convert_file(model.file, {.context = 32, .max_seq = 16})));
  CHECK(constant_method(read, "get_max_seq_len") == 16);
  CHECK(constant_method(read, "get_max_context_len") == 32);
  CHECK(constant_method(read, "get_trained_context_len") == 64);
  CHECK(constant_method(read, "get_n_layers") == 2);
  CHECK(constant_method(read, "get_vocab_size") == 50);
  CHECK(constant_method(read, "use_kv_cache") == 1);
  CHECK(constant_method(read, "use_sdpa_with_kv_cache") == 1);
  CHECK(constant_method(read, "enable_dynamic_shape") == 1);
  CHECK(constant_method(read, "enable_f16_gemm") == 1);
  CHECK(constant_method(read, "get_bos_id") == 2);
  const pte::ExecutionPlan* ends = pte::find_plan(read.program, "get_eos_ids");
  REQUIRE(ends != nullptr);
  CHECK(ends->outputs.size() == 2);
  CHECK(std::get<int64_t>(ends->values[1]) == 2);

  const pte::ExecutionPlan& forward = read.program.plans[0];
  CHECK(forward.name == "forward");
  const auto& tokens = std::get<pte::Tensor>(forward.values[forward.inputs[0]]);
  CHECK(tokens.sizes == std::vector<int32_t>{1, 16});
  CHECK(tokens.dynamism == pte::ShapeDynamism::bounded);
  CHECK(tokens.scalar_type == pte::ScalarType::int64);
  const auto& logits = std::get<pte::Tensor>(forward.values[forward.outputs[0]]);
  CHECK(logits.sizes == std::vector<int32_t>{1, 50});

  const pte::DataMap::Entry* tokenizer = read.data.find(kTokenizerKey);
  REQUIRE(tokenizer != nullptr);
  CHECK(must(tokenizer->data.copy(1 << 20))[0] == std::byte{'{'});
  CHECK(read.data.find(kTokenizerConfigKey) != nullptr);
  CHECK(read.data.find(kChatTemplateKey)->data.size() == 7);
  CHECK(read.report.tokenizer);
  CHECK(read.report.notes.empty());
}

TEST_CASE("the calls of one layer, in the exporter's order") {
  TestModel model;
  model.layers = 1;
  const Read read = converted(model);
  std::vector<std::string> names;
  for (const pte::OperatorCall& call : read.graph.chain) {
    names.push_back(call.name);
  }
  const std::string linear = "et_vk.linear_q4gsw.default";
  const std::string view = "aten.view_copy.default";
  CHECK(names == std::vector<std::string>{"et_vk.prepack.default",
                                          "et_vk.prepack.default",
                                          "sym_size.int",
                                          "et_vk.embedding_q4gsw.default",
                                          "et_vk.select_as_symint.default",
                                          "add",
                                          "aten.slice_copy.Tensor",
                                          "aten.slice_copy.Tensor",
                                          "et_vk.rms_norm.default",
                                          linear,
                                          view,
                                          linear,
                                          view,
                                          linear,
                                          view,
                                          "et_vk.apply_rotary_emb.default",
                                          "et_vk.select_as_symint.default",
                                          "sdpa_with_kv_cache.default",
                                          view,
                                          linear,
                                          view,
                                          "aten.add.Tensor",
                                          "et_vk.rms_norm.default",
                                          linear,
                                          view,
                                          "aten.sigmoid.default",
                                          "aten.mul.Tensor",
                                          linear,
                                          view,
                                          "aten.mul.Tensor",
                                          linear,
                                          view,
                                          "aten.add.Tensor",
                                          "aten.select_copy.int",
                                          "et_vk.rms_norm.default",
                                          linear});
}

// Element i of a GGUF block and element i of the packed row are one nibble.
TEST_CASE("Q4_0 keeps its nibbles and scales") {
  TestModel model;
  model.make();
  const Read read = read_back(must(convert_file(model.file)));
  const gguf::File file = must(gguf::read_gguf(model.file.range()));
  const std::string name = "blk.1.ffn_down.weight";  // 64 rows of 3 blocks
  const auto blocks = must(file.find_tensor(name)->data.copy(1 << 20));
  const auto packed = must(read.data.find(name + ".q4")->data.copy(1 << 20));
  const auto scales = must(read.data.find(name + ".scales")->data.copy(1 << 20));
  REQUIRE(packed.size() == 64 * 48);
  REQUIRE(scales.size() == 3 * 64 * 4);
  bool equal = true;
  for (size_t block = 0; block < 64 * 3; ++block) {
    const std::byte* in = &blocks[block * 18];
    for (size_t i = 0; i < 32; ++i) {
      const auto theirs = std::to_integer<int>(in[2 + i % 16]) >> (i / 16 * 4) & 15;
      const auto ours = std::to_integer<int>(packed[block * 16 + i / 2]) >> (i % 2 * 4) & 15;
      equal = equal && theirs == ours;
    }
    uint16_t half = 0;
    float scale = 0;
    std::memcpy(&half, in, 2);
    std::memcpy(&scale, &scales[(block % 3 * 64 + block / 3) * 4], 4);
    equal = equal && scale == half_to_float(half);
  }
  CHECK(equal);
  CHECK(std::ranges::all_of(read.report.weights, &ConvertedWeight::exact));
}

TEST_CASE("a tied head shares the embedding's nibbles") {
  const Read tied = converted({});
  const auto& embedding = tied.call("et_vk.embedding_q4gsw.default");
  const auto& head = tied.graph.chain.back();
  CHECK(tied.constant(embedding.args[0]).named_key == "token_embd.weight.q4");
  CHECK(tied.constant(head.args[1]).named_key == "token_embd.weight.q4");
  CHECK(tied.constant(embedding.args[1]).named_key != tied.constant(head.args[2]).named_key);
  CHECK(tied.report.tied);
  TestModel untied;
  untied.tied = false;
  const Read own = converted(untied);
  CHECK(own.constant(own.graph.chain.back().args[1]).named_key == "output.weight.q4");
  CHECK(!own.report.tied);
}

TEST_CASE("caches are zeros, each in memory of its own") {
  const Read read = converted({}, {.context = 48});
  const auto& call = read.call("sdpa_with_kv_cache.default", 1);
  const pte::GraphTensor& keys = read.tensor(call.args[3]);
  CHECK(keys.dims == std::vector<uint32_t>{1, 48, 2, 16});
  CHECK(keys.mem_obj_id);
  CHECK(keys.mem_obj_id != read.tensor(call.args[4]).mem_obj_id);
  CHECK(read.constant(call.args[3]).named_key == read.constant(call.args[4]).named_key);
  const auto zeros = must(read.constant(call.args[3]).data.copy(1 << 20));
  CHECK(std::ranges::all_of(zeros, [](std::byte b) { return b == std::byte{0}; }));
}

// Two activations in one memory never live at the same time.
TEST_CASE("activations share memory only when they may") {
  const Read read = converted({});
  std::map<uint32_t, std::pair<size_t, size_t>> lives;  // by value id: first and last call
  for (size_t i = 0; i < read.graph.chain.size(); ++i) {
    for (const uint32_t arg : read.graph.chain[i].args) {
      const auto* list = std::get_if<pte::ValueIdList>(&read.graph.values[arg]);
      for (const uint32_t id : list != nullptr ? list->ids : std::vector<uint32_t>{arg}) {
        lives.try_emplace(id, i, i).first->second.second = i;
      }
    }
  }
  lives[read.graph.outputs[0]].second = read.graph.chain.size();
  std::set<uint32_t> memories;
  for (const auto& [a, life_a] : lives) {
    const auto* tensor_a = std::get_if<pte::GraphTensor>(&read.graph.values[a]);
    if (tensor_a == nullptr || !tensor_a->mem_obj_id) {
      continue;
    }
    memories.insert(*tensor_a->mem_obj_id);
    for (const auto& [b, life_b] : lives) {
      const auto* tensor_b = std::get_if<pte::GraphTensor>(&read.graph.values[b]);
      if (b != a && tensor_b != nullptr && tensor_b->mem_obj_id == tensor_a->mem_obj_id) {
        CHECK((life_a.second < life_b.first || life_b.second < life_a.first));
      }
    }
  }
  CHECK(memories.size() < 16);  // 4 of them caches
}

TEST_CASE("halves of a head turn in qwen, by the whole table") {
  TestModel model;
  model.architecture = "qwen3";
  model.head_norms = true;
  const Read read = converted(model);
  const auto& call = read.call("et_vk.apply_rotary_emb_hf.default");
  CHECK(read.tensor(call.args[2]).dims == std::vector<uint32_t>{64, 16});
  CHECK(std::holds_alternative<pte::SymInt>(read.graph.values[call.args[4]]));
  CHECK(read.count("et_vk.rms_norm.default") == 2 * 4 + 1);
  CHECK(read.count("et_vk.select_as_symint.default") == 1);
  CHECK(read.count("aten.slice_copy.Tensor") == 0);
}

TEST_CASE("f32 and f16 weights are plain linears") {
  TestModel model;
  model.type = TensorType::f16;
  const Read f32 = converted(model, {.weights = WeightFormat::f32});
  CHECK(f32.count("aten.linear.default") == 2 * 7 + 1);
  CHECK(f32.count("aten.embedding.default") == 1);
  CHECK(f32.tensor(f32.graph.outputs[0]).dtype == pte::GraphDtype::float32);
  CHECK(std::ranges::all_of(f32.report.weights, &ConvertedWeight::exact));
  const Read f16 = converted(model, {.weights = WeightFormat::f16});
  const pte::GraphTensor& logits = f16.tensor(f16.graph.outputs[0]);
  CHECK(logits.dtype == pte::GraphDtype::float16);
  CHECK(logits.staging_dtype == pte::GraphDtype::float32);
  CHECK(f16.data.find("token_embd.weight")->data.size() == 50 * 64 * 2);
  CHECK(f16.program.plans[0].delegates[0].compile_specs[1].value[0] == std::byte{1});
}

TEST_CASE("a head in float32") {
  const Read read = converted({}, {.float_head = true});
  const auto& head = read.graph.chain.back();
  CHECK(head.name == "aten.linear.default");
  CHECK(read.constant(head.args[1]).named_key == "token_embd.weight");
  CHECK(read.call("et_vk.embedding_q4gsw.default").args.size() == 6);
  CHECK(read.count("et_vk.linear_q4gsw.default") == 2 * 7);
}

TEST_CASE("limits of the options") {
  TestModel model;
  model.make();
  const auto message = [&](const ConvertOptions& options) {
    const auto result = convert_file(model.file, options);
    REQUIRE(!result.ok());
    CHECK(result.error().code() == ErrorCode::invalid_argument);
    return result.error().message();
  };
  CHECK(message({.context = 65}) ==
        "The context (65) exceeds what the model was trained for (64).");
  CHECK(message({.context = 0}) == "The context (0) is below 1.");
  CHECK(message({.context = 1}) == "The context (1) is below 2.");
  CHECK(message({.max_seq = 1}) == "The longest sequence (1) is below 2.");
  // What is longer than the context is cut to it.
  CHECK(must(convert_file(model.file, {.max_seq = 512})).report.max_seq == 64);
}

TEST_CASE("random models have the shape of their names") {
  const ConvertedProgram model = must(random_model("llama-1b", {}));
  CHECK(model.report.layers == 16);
  CHECK(model.report.context == 4096);
  CHECK(model.report.tied);
  const Read read = read_back(model);
  CHECK(read.tensor(read.call("et_vk.linear_q4gsw.default").args[1]).dims ==
        std::vector<uint32_t>{2048, 1024});
  // Equal each time, and no two layers alike.
  const auto first = [&](const char* key) {
    std::vector<std::byte> bytes(64);
    REQUIRE(read.data.find(key)->data.read(4096, bytes).ok());
    return bytes;
  };
  CHECK(first("blk.0.ffn_up.weight.q4") == first("blk.0.ffn_up.weight.q4"));
  CHECK(first("blk.0.ffn_up.weight.q4") != first("blk.1.ffn_up.weight.q4"));
  CHECK(!must(random_model("llama-8b", {})).report.tied);
  CHECK(random_model("llama-2b", {}).error().message() ==
        "There is no random model \"llama-2b\"; there are smollm2-135m, llama-1b, llama-3b, "
        "llama-8b.");
}

TEST_CASE("a context at load may not be longer than a sliding window") {
  TestModel model;
  model.architecture = "qwen2";
  model.make();
  model.file.u32("qwen2.attention.sliding_window", 48);
  const Read read = read_back(must(convert_file(model.file, {.context = 32})));
  CHECK(constant_method(read, "get_trained_context_len") == 48);
}

// Scales are kept only until they are read: together they are 17 MB here, the largest 3.5 MB.
TEST_CASE("weights pass through") {
  const ConvertedProgram model = must(random_model("smollm2-135m", {.threads = 1}));
  const ByteSourcePtr bytes = must(pte::assemble_program(model.program));
  uint64_t size = 0;
  const ptero::test::MemoryMeter meter;
  REQUIRE(copy_bytes(*bytes, [&](std::span<const std::byte> piece) {
            size += piece.size();
            return ok_status();
          }).ok());
  CHECK(size == bytes->size());
  CHECK(meter.peak() < kCopyPieceSize + (size_t{6} << 20));
}

}  // namespace
}  // namespace ptero::convert
