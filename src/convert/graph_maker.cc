// SPDX-License-Identifier: BSD-3-Clause
#include "convert/graph_maker.h"

#include <algorithm>
#include <set>
#include <variant>

namespace ptero::convert {
namespace {

// Of a tensor without dynamic memory: sizes come from numbers that ModelConfig bounds.
uint64_t bytes_of(const pte::GraphTensor& tensor) {
  uint64_t bytes = *pte::element_size(tensor.dtype);
  for (const uint32_t dim : tensor.dims) {
    bytes *= dim;
  }
  return bytes;
}

}  // namespace

GraphMaker::GraphMaker(pte::GraphDtype activations) : activations_(activations) {
  graph_.version = std::string("0");
}

Id GraphMaker::add(pte::GraphValue value) {
  graph_.values.push_back(std::move(value));
  is_activation_.push_back(false);
  return static_cast<Id>(graph_.values.size() - 1);
}

Id GraphMaker::integer(int64_t value) {
  const auto found = integers_.find(value);
  return found != integers_.end() ? found->second : integers_[value] = add(value);
}

Id GraphMaker::real(double value) {
  const auto found = reals_.find(value);
  return found != reals_.end() ? found->second : reals_[value] = add(value);
}

Id GraphMaker::truth(bool value) {
  const auto found = truths_.find(value);
  return found != truths_.end() ? found->second : truths_[value] = add(value);
}

Id GraphMaker::tensor(std::vector<uint32_t> dims) {
  const Id id = loaded(std::move(dims));
  is_activation_[id] = true;
  return id;
}

Id GraphMaker::loaded(std::vector<uint32_t> dims) {
  return add(pte::GraphTensor{.dtype = activations_,
                              .dims = std::move(dims),
                              .storage = pte::StorageType::buffer,
                              .layout = pte::MemoryLayout::width_packed,
                              .staging_dtype = pte::GraphDtype::float32});
}

Id GraphMaker::input(std::vector<uint32_t> dims) {
  const Id id = add(pte::GraphTensor{.dtype = pte::GraphDtype::int32,
                                     .dims = std::move(dims),
                                     .storage = pte::StorageType::buffer,
                                     .layout = pte::MemoryLayout::width_packed,
                                     .staging_dtype = pte::GraphDtype::int32});
  graph_.inputs.push_back(id);
  return id;
}

Id GraphMaker::constant(std::string key, pte::GraphDtype dtype, std::vector<uint32_t> dims,
                        ByteSourcePtr bytes) {
  const auto [place, is_new] = keys_.emplace(key, named_.size());
  if (is_new) {
    named_.emplace_back(key, ByteRange::whole(std::move(bytes)));
  }
  pte::GraphConstant constant;
  constant.offset = pte::kNamedDataOffset;
  constant.data = named_[place->second].second;
  constant.named_key = std::move(key);
  graph_.constants.push_back(std::move(constant));
  return add(pte::GraphTensor{.dtype = dtype,
                              .dims = std::move(dims),
                              .constant_id = static_cast<uint32_t>(graph_.constants.size() - 1),
                              .staging_dtype = dtype});
}

Id GraphMaker::state(std::string key, std::vector<uint32_t> dims, ByteSourcePtr bytes) {
  const Id id = constant(std::move(key), activations_, std::move(dims), std::move(bytes));
  states_.push_back(id);
  return id;
}

void GraphMaker::call(std::string name, std::vector<Id> args) {
  const auto node = static_cast<uint32_t>(graph_.chain.size());
  graph_.chain.push_back({node, std::move(name), std::move(args)});
}

pte::Graph GraphMaker::finish(std::vector<Id> outputs) {
  uint32_t memory_id = share_memory(outputs);
  for (const Id id : states_) {
    std::get<pte::GraphTensor>(graph_.values[id]).mem_obj_id = memory_id++;
  }
  graph_.outputs = std::move(outputs);
  return std::move(graph_);
}

// In order of the calls: an activation takes the smallest free memory that it fits into, else the
// largest, which grows, else new memory; it is given back behind the last call that names it. What
// a call reads is never where it writes.
uint32_t GraphMaker::share_memory(const std::vector<Id>& outputs) {
  std::vector<std::vector<Id>> named(graph_.chain.size());
  std::vector<size_t> last(graph_.values.size(), 0);
  for (size_t i = 0; i < graph_.chain.size(); ++i) {
    for (const Id arg : graph_.chain[i].args) {
      const auto* items = std::get_if<pte::ValueIdList>(&graph_.values[arg]);
      const std::vector<Id> alone = {arg};
      for (const Id id : items != nullptr ? items->ids : alone) {
        if (is_activation_[id]) {
          named[i].push_back(id);
          last[id] = i;
        }
      }
    }
  }
  for (const Id id : outputs) {
    last[id] = graph_.chain.size();  // never given back
  }
  std::vector<uint64_t> sizes;                   // by memory id
  std::set<std::pair<uint64_t, uint32_t>> free;  // size, memory id
  for (size_t i = 0; i < graph_.chain.size(); ++i) {
    for (const Id id : named[i]) {
      auto& tensor = std::get<pte::GraphTensor>(graph_.values[id]);
      if (tensor.mem_obj_id) {
        continue;
      }
      const uint64_t bytes = bytes_of(tensor);
      auto best = free.lower_bound({bytes, 0});
      if (best == free.end() && !free.empty()) {
        best = std::prev(free.end());
      }
      if (best == free.end()) {
        tensor.mem_obj_id = static_cast<uint32_t>(sizes.size());
        sizes.push_back(bytes);
        continue;
      }
      tensor.mem_obj_id = best->second;
      sizes[best->second] = std::max(sizes[best->second], bytes);
      free.erase(best);
    }
    std::ranges::sort(named[i]);
    const auto repeated = std::ranges::unique(named[i]);
    named[i].erase(repeated.begin(), repeated.end());
    for (const Id id : named[i]) {
      if (last[id] == i) {
        const uint32_t memory = *std::get<pte::GraphTensor>(graph_.values[id]).mem_obj_id;
        free.emplace(sizes[memory], memory);
      }
    }
  }
  return static_cast<uint32_t>(sizes.size());
}

}  // namespace ptero::convert
