// SPDX-License-Identifier: BSD-3-Clause
// What inspect says about a file, as plain values: text.h and json.h print them, tests compare them
// with what the exporter says.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inspect/load.h"
#include "inspect/op_table.h"
#include "inspect/shapes.h"
#include "pte/program.h"

namespace ptero::inspect {

// What this build can run. The front end fills it from the operator registries, so the report
// never promises more than the build does.
struct Capabilities {
  std::vector<std::string> graph_operators;  // of Vulkan delegates: "aten.add.Tensor"
  std::vector<std::string> host_operators;   // of the portable part: "aten::add.out"
  bool jumps = false;                        // methods with control flow
};

struct OpCount {
  std::string name;
  Family family = Family::unknown;
  uint64_t count = 0;
};

struct TensorReport {
  std::string dtype;  // "float32"
  Shape shape;
  pte::ShapeDynamism dynamism = pte::ShapeDynamism::fixed;
};

// An input, an output or a constant result of a method.
struct ValueReport {
  std::string kind;                    // "tensor", "int", "double", "bool", "string", "none", ...
  std::optional<TensorReport> tensor;  // for tensors
  std::optional<pte::Value> constant;  // for a result that no instruction computes, no tensor
  std::vector<int64_t> int_items;      // resolved items of an IntIdList constant
};

struct ByteCount {
  uint64_t tensors = 0;
  uint64_t bytes = 0;
};

struct ConstantsReport {
  uint64_t tensors = 0;                       // that refer to a constant
  uint64_t entries = 0;                       // different pieces of data among them
  uint64_t bytes = 0;                         // of the entries
  std::map<std::string, ByteCount> by_dtype;  // entries and their bytes, by the referring dtype
};

struct MemoryReport {
  uint64_t objects = 0;       // shared allocations
  uint64_t object_bytes = 0;  // each as large as its largest member
  uint64_t object_tensors = 0;
  uint64_t unshared_bytes = 0;     // what their tensors would take without sharing
  uint64_t dedicated_tensors = 0;  // no constant and no object
  uint64_t dedicated_bytes = 0;
  uint64_t state_tensors = 0;  // KV caches: a constant to start from and an object id
  uint64_t state_bytes = 0;
};

struct GraphReport {
  uint64_t calls = 0;
  uint64_t values = 0;
  std::vector<OpCount> operators;  // most frequent first
  std::vector<TensorReport> inputs;
  std::vector<TensorReport> outputs;  // a SymInt has dtype "symint" and no dims
  ConstantsReport constants;
  MemoryReport memory;
  uint64_t dispatches = 0;  // of one run when every computing call takes its own
};

struct DelegateReport {
  std::string backend;
  uint64_t bytes = 0;
  std::vector<std::pair<std::string, std::string>> compile_specs;  // value as text
  std::optional<GraphReport> graph;
};

struct MethodReport {
  std::string name;
  std::vector<ValueReport> inputs;
  std::vector<ValueReport> outputs;
  bool constant = false;  // no instructions: a piece of metadata
  uint64_t instructions = 0;
  uint64_t delegate_calls = 0;
  uint64_t jumps = 0;
  uint64_t planned_bytes = 0;  // arenas of the portable part
  std::vector<OpCount> host_operators;
  std::vector<DelegateReport> delegates;
};

struct BundledMethodReport {
  std::string name;
  uint64_t cases = 0;
  uint64_t bytes = 0;  // of the tensors of its cases
};

struct DataEntryReport {
  std::string key;
  uint64_t bytes = 0;
  std::optional<TensorReport> tensor;  // .ptd entries may say what they hold
};

struct Report {
  std::string path;
  std::string format;  // "pte", "bpte" or "ptd"
  uint64_t bytes = 0;
  uint64_t version = 0;
  pte::ContainerLayout layout;  // of the .pte
  uint64_t segments = 0;
  uint64_t segment_bytes = 0;
  uint64_t named_data = 0;
  ByteCount host_constants;  // of the portable part
  std::vector<MethodReport> methods;
  std::vector<BundledMethodReport> bundled;
  std::vector<DataEntryReport> entries;  // of a .ptd
  std::vector<std::string> obstacles;    // why this build cannot run it, one sentence each
};

Report make_report(const LoadedFile& file, const Capabilities& capabilities);

// Parts of the above that the call list and the drawing share.

// Shapes of every graph of a plan's delegates, sizes named across them; empty for other backends.
std::vector<ShapeTable> trace_plan(const LoadedProgram& loaded, size_t plan);

// Shape and type of a method's tensor. `traced` comes from trace_plan().
TensorReport describe_tensor(const pte::Tensor& tensor);

// "aten::add.out".
std::string full_name(const pte::Operator& op);

}  // namespace ptero::inspect
