// SPDX-License-Identifier: BSD-3-Clause
// Private to src/convert: a delegate's graph, put together call by call.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_source.h"
#include "pte/graph.h"

namespace ptero::convert {

using Id = uint32_t;

class GraphMaker {
 public:
  // `activations` is float32 or float16; at the delegate's boundary they are float32.
  explicit GraphMaker(pte::GraphDtype activations);

  // Scalars are there once, as from the exporter.
  Id integer(int64_t value);
  Id real(double value);
  Id truth(bool value);
  Id none() { return add(pte::Null{}); }
  Id symbol() { return add(pte::SymInt{}); }
  Id list(std::vector<Id> ids) { return add(pte::ValueIdList{std::move(ids)}); }

  // An activation; all share memory as their lifetimes allow.
  Id tensor(std::vector<uint32_t> dims);
  // A delegate input of int32.
  Id input(std::vector<uint32_t> dims);
  // What an operator makes of a constant as the graph is loaded.
  Id loaded(std::vector<uint32_t> dims);
  // Bytes under a key of the program's named data. Constants of one key share their bytes.
  Id constant(std::string key, pte::GraphDtype dtype, std::vector<uint32_t> dims,
              ByteSourcePtr bytes);
  // A constant that operators write into, in memory of its own.
  Id state(std::string key, std::vector<uint32_t> dims, ByteSourcePtr bytes);

  // `args` ends with what the call produces.
  void call(std::string name, std::vector<Id> args);

  // The graph, with memory ids given out, and its named data.
  pte::Graph finish(std::vector<Id> outputs);
  const std::vector<std::pair<std::string, ByteRange>>& named_data() const { return named_; }

 private:
  Id add(pte::GraphValue value);
  // Returns how many memory ids it gave out.
  uint32_t share_memory(const std::vector<Id>& outputs);

  pte::GraphDtype activations_;
  pte::Graph graph_;
  std::map<int64_t, Id> integers_;
  std::map<double, Id> reals_;
  std::map<bool, Id> truths_;
  std::map<std::string, size_t> keys_;  // into named_
  std::vector<std::pair<std::string, ByteRange>> named_;
  std::vector<bool> is_activation_;  // by value id
  std::vector<Id> states_;
};

}  // namespace ptero::convert
