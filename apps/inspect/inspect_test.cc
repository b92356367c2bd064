// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "inspect/call_list.h"
#include "inspect/drawing.h"
#include "inspect/json.h"
#include "inspect/load.h"
#include "inspect/op_table.h"
#include "inspect/printable.h"
#include "inspect/repeats.h"
#include "inspect/shapes.h"
#include "inspect/text.h"
#include "pte/operator_signature.h"

namespace ptero::inspect {
namespace {

using pte::GraphTensor;

LoadedFile load(const std::string& name) {
  Result<LoadedFile> file = load_file(PTERO_TESTDATA "/pte/" + name, {});
  REQUIRE_MESSAGE(file.ok(), (file.ok() ? "" : file.error().to_string()));
  return std::move(file).value();
}

TEST_CASE("inspect: names from files cannot steer a terminal") {
  CHECK(printable("aten.add") == "aten.add");
  CHECK(printable("h\u00e9llo \u4f60") == "h\u00e9llo \u4f60");
  CHECK(printable("a\x1b[2Jb\n") == "a\\x1b[2Jb\\x0a");
  CHECK(printable("say \"hi\\\"") == "say \\\"hi\\\\\\\"");
  CHECK(printable("\xc3") == "\\xc3");                // cut off
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");       // overlong
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");       // a C1 control
  CHECK(printable("\u202e!") == "\\xe2\\x80\\xae!");  // turns the direction
}

TEST_CASE("inspect: every operator of the partitioner has a family") {
  for (const pte::OperatorSignature& signature : pte::operator_signatures()) {
    CAPTURE(signature.name);
    CHECK(op_info(signature.name).family != Family::unknown);
  }
  CHECK(op_info("my.own_op").family == Family::unknown);
  CHECK(short_op_name("et_vk.rms_norm.default") == "rms_norm");
  CHECK(short_op_name("sdpa_with_kv_cache.default") == "sdpa_with_kv_cache");
  CHECK(short_op_name("add") == "add");
}

// x [1, 8, 6] whose second dimension is read, sliced by a position, viewed, normalised.
TEST_CASE("inspect: live sizes are followed through a graph") {
  pte::Graph graph;
  const auto tensor = [&](std::vector<uint32_t> dims) {
    graph.values.push_back(GraphTensor{.dims = std::move(dims)});
    return static_cast<uint32_t>(graph.values.size() - 1);
  };
  const auto value = [&](pte::GraphValue v) {
    graph.values.push_back(std::move(v));
    return static_cast<uint32_t>(graph.values.size() - 1);
  };
  const uint32_t x = tensor({1, 8, 6});
  const uint32_t position = tensor({1});
  const uint32_t table = tensor({64, 3});
  const uint32_t zero = value(int64_t{0});
  const uint32_t one = value(int64_t{1});
  const uint32_t two = value(int64_t{2});
  const uint32_t size = value(pte::SymInt{});
  const uint32_t start = value(pte::SymInt{});
  const uint32_t end = value(pte::SymInt{});
  const uint32_t sliced = tensor({8, 3});
  const uint32_t three = value(int64_t{3});
  const uint32_t sizes = value(pte::ValueIdList{{one, size, two, three}});
  const uint32_t viewed = tensor({1, 8, 2, 3});
  const uint32_t weight = tensor({5, 6});
  const uint32_t linear = tensor({1, 8, 5});
  graph.inputs = {x, position};
  graph.chain = {{0, "sym_size.int", {x, one, size}},
                 {1, "et_vk.select_as_symint.default", {position, zero, zero, start}},
                 {2, "add", {start, size, end}},
                 {3, "aten.slice_copy.Tensor", {table, zero, start, end, one, sliced}},
                 {4, "aten.view_copy.default", {x, sizes, viewed}},
                 {5, "aten.linear.default", {x, weight, zero, linear}}};
  const ShapeTable shapes = trace_shapes(graph, {});
  CHECK(to_string(shapes.tensors[x]) == "[1, S<=8, 6]");
  CHECK(to_string(shapes.tensors[sliced], false) == "[S, 3]");
  CHECK(to_string(shapes.tensors[viewed], false) == "[1, S, 2, 3]");
  CHECK(to_string(shapes.tensors[linear], false) == "[1, S, 5]");
  CHECK(to_string(*shapes.integers[end]) == "S+pos");
  CHECK(to_string(shapes.tensors[weight]) == "[5, 6]");
}

TEST_CASE("inspect: names do not grow without end") {
  // Each step adds the names of the step before to themselves through a view and a size.
  pte::Graph graph;
  graph.values = {GraphTensor{.dims = {4, 5}}, int64_t{0}, int64_t{1}, pte::SymInt{},
                  pte::SymInt{}};
  graph.inputs = {0};
  graph.chain = {{0, "sym_size.int", {0, 1, 3}}, {0, "sym_size.int", {0, 2, 4}}};
  uint32_t a = 3;
  uint32_t b = 4;
  for (int step = 0; step < 200; ++step) {
    const auto id = static_cast<uint32_t>(graph.values.size());
    graph.values.insert(graph.values.end(),
                        {pte::SymInt{}, pte::SymInt{}, pte::ValueIdList{{id, id + 1}},
                         GraphTensor{.dims = {4, 5}}, pte::SymInt{}, pte::SymInt{}});
    graph.chain.insert(graph.chain.end(), {{0, "add", {a, b, id}},
                                           {0, "sub", {a, b, id + 1}},
                                           {0, "aten.view_copy.default", {0, id + 2, id + 3}},
                                           {0, "sym_size.int", {id + 3, 1, id + 4}},
                                           {0, "sym_size.int", {id + 3, 2, id + 5}}});
    a = id + 4;
    b = id + 5;
  }
  for (const Shape& shape : trace_shapes(graph, {}).tensors) {
    CHECK(to_string(shape).size() < 100);
  }
}

Box box(std::string name, std::vector<size_t> from) {
  Box box{.title = name, .same = name};
  for (const size_t source : from) {
    box.arrows.push_back({.from = source, .label = ""});
  }
  return box;
}

// in, shared, then `count` layers of norm, linear (takes shared too), add (takes the layer's
// input).
std::vector<Box> layers(size_t count) {
  std::vector<Box> boxes = {box("in", {}), box("shared", {})};
  size_t input = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t norm = boxes.size();
    boxes.push_back(box("norm", {input}));
    boxes.push_back(box("linear", {norm, 1}));
    boxes.push_back(box("add", {input, norm + 1}));
    input = norm + 2;
  }
  boxes.push_back(box("out", {input}));
  return boxes;
}

TEST_CASE("inspect: layers that are wired alike are found") {
  CHECK(find_repeats(layers(5)) == std::vector<Repeat>{{2, 3, 5}});
  CHECK(find_repeats(layers(1)).empty());
  // The third layer takes the input of the first: two layers, then others.
  std::vector<Box> boxes = layers(4);
  boxes[2 + 2 * 3].arrows[0].from = 0;
  CHECK(find_repeats(boxes)[0].count == 2);
  // A layer with another operator splits the row.
  boxes = layers(5);
  boxes[2 + 2 * 3 + 1] = box("gelu", {2 + 2 * 3, 1});
  CHECK(find_repeats(boxes) == std::vector<Repeat>{{2, 3, 2}, {11, 3, 2}});
}

TEST_CASE("inspect: the text of the example in docs/formats.md") {
  LoadedFile file = load("example.pte");
  file.path = "example.pte";
  CHECK(to_text(make_report(file, {})) ==
        "example.pte: ExecuTorch program, 1.13 KiB\n"
        "  3 segments (488 bytes), 1 named entry, 616 bytes outside of segments\n"
        "\n"
        "Methods\n"
        "  f(float32 [2]) -> float32 [2]\n"
        "    1 delegate call, no operators outside of delegates, 0 bytes planned there\n"
        "\n"
        "Delegate 0 of f: VulkanBackend, 480 bytes\n"
        "  1 call on 4 values, about 1 GPU dispatch a run without fusion\n"
        "  Operators\n"
        "    1  aten.add.Tensor  elementwise\n"
        "  Constants: 1 tensor in 1 entry, 8 bytes\n"
        "    float32  1 entry  8 bytes\n"
        "  Memory at the largest shapes\n"
        "    shared     1 object  8 bytes  for 1 tensor of together 8 bytes\n"
        "    dedicated  1 tensor  8 bytes\n"
        "\n"
        "What would not run here\n"
        "  - This build runs no operators of delegates yet.\n");
  CHECK(to_call_list(*file.program) ==
        "method f\n"
        "    0  call delegate 0(%0, %1)\n"
        "\n"
        "delegate 0 of f (VulkanBackend)\n"
        "  in   %0 f32 [2]\n"
        "    0  aten.add.Tensor(%0, const %1 f32 [2], 1) -> %2 f32 [2]\n"
        "  out  %2 f32 [2]\n");
}

TEST_CASE("inspect: obstacles follow from what the build can do") {
  const auto obstacles = [](const std::string& name, const Capabilities& capabilities) {
    return make_report(load(name), capabilities).obstacles;
  };
  using Sentences = std::vector<std::string>;
  CHECK(obstacles("example.pte", {.graph_operators = {"aten.add.Tensor"}}).empty());
  CHECK(obstacles("example.pte", {.graph_operators = {"aten.mul.Tensor"}}) ==
        Sentences{"Delegate 0 of method f uses operators that this build cannot run: "
                  "aten.add.Tensor (1x)."});
  CHECK(obstacles("portable_linear.pte", {}) ==
        Sentences{"This build runs no operators outside of delegates yet, and the program has "
                  "some."});
  CHECK(obstacles("portable_branch.pte",
                  {.host_operators = {"aten::add.out", "aten::mul.out",
                                      "dim_order_ops::_to_dim_order_copy.out"}}) ==
        Sentences{"Method forward has jumps (2); this build runs methods without control flow."});
  CHECK(obstacles("vulkan_add.pte", {.graph_operators = {"aten.add.Tensor"}}).empty());
}

TEST_CASE("inspect: a drawing shows boxes, arrows and shapes") {
  const LoadedFile file = load("example.pte");
  const Result<std::string> dot = to_dot(*file.program, "a <b>");
  REQUIRE(dot.ok());
  CHECK(dot->find("a &lt;b&gt;") != std::string::npos);
  CHECK(dot->find("<B>add</B>") != std::string::npos);
  CHECK(dot->find("[2], 8 bytes") != std::string::npos);
  CHECK(dot->find("n0_0 -> n0_1") != std::string::npos);
  CHECK(dot->find("n0_1 -> n0_2") != std::string::npos);
  const Status status = draw(*dot, "out.jpeg");
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message() ==
        "The extension (.jpeg) of out.jpeg is none that a drawing can have (.svg, .png, .pdf, "
        ".dot).");
}

TEST_CASE("inspect: a size is written as people do") {
  CHECK(format_bytes(0) == "0 bytes");
  CHECK(format_bytes(1) == "1 byte");
  CHECK(format_bytes(1023) == "1023 bytes");
  CHECK(format_bytes(1536) == "1.50 KiB");
  CHECK(format_bytes(uint64_t{5} << 50) == "5120.00 TiB");
}

}  // namespace
}  // namespace ptero::inspect
