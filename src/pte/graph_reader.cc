// SPDX-License-Identifier: BSD-3-Clause
#include "pte/graph_reader.h"

#include <utility>

#include <fmt/ranges.h>

#include "base/checked.h"
#include "pte/flatbuffer_input.h"
#include "pte/operator_signature.h"
#include "pte/packing_reader.h"
#include "schema/vkgraph_generated.h"

namespace ptero::pte {
namespace {

namespace vk = fbs::vkgraph;

class GraphReader {
 public:
  GraphReader(const Delegate& delegate, const DataMap& data)
      : delegate_(delegate), data_(data), reader_("graph") {}

  Result<Graph> read(const vk::VkGraph& in) {
    PTERO_ASSIGN_OR_RETURN(graph_.version, reader_.read_text(in.version()));
    PTERO_REJECT_IF(in.shaders() != nullptr && in.shaders()->size() != 0, unsupported,
                    "The graph brings {} shaders of its own.", in.shaders()->size());
    graph_.storage_override = static_cast<StorageType>(in.storage_type_override());
    graph_.layout_override = static_cast<MemoryLayout>(in.memory_layout_override());
    PTERO_RETURN_IF_ERROR(read_constants(in));
    PTERO_RETURN_IF_ERROR(read_values(in));
    PTERO_RETURN_IF_ERROR(reader_.check_present(in.input_ids(), "VkGraph.input_ids"));
    PTERO_ASSIGN_OR_RETURN(graph_.inputs, reader_.read_ids(in.input_ids(), graph_.values.size(),
                                                           "VkGraph.input_ids", "values"));
    PTERO_RETURN_IF_ERROR(check_boundary(graph_.inputs, "input"));
    PTERO_RETURN_IF_ERROR(reader_.check_present(in.output_ids(), "VkGraph.output_ids"));
    PTERO_ASSIGN_OR_RETURN(graph_.outputs, reader_.read_ids(in.output_ids(), graph_.values.size(),
                                                            "VkGraph.output_ids", "values"));
    PTERO_RETURN_IF_ERROR(check_boundary(graph_.outputs, "output"));
    PTERO_RETURN_IF_ERROR(read_chain(in));
    return std::move(graph_);
  }

 private:
  // ---- constants ----

  Status read_constants(const vk::VkGraph& in) {
    if (in.constants() == nullptr) {
      return ok_status();
    }
    PTERO_RETURN_IF_ERROR(reader_.charge(in.constants()->size(), sizeof(GraphConstant)));
    graph_.constants.reserve(in.constants()->size());
    for (const vk::VkBytes* entry : *in.constants()) {
      PTERO_ASSIGN_OR_RETURN(GraphConstant constant, read_constant(*entry),
                             "while reading constant {}", graph_.constants.size());
      graph_.constants.push_back(std::move(constant));
    }
    return ok_status();
  }

  Result<GraphConstant> read_constant(const vk::VkBytes& in) {
    GraphConstant out;
    out.offset = in.offset();
    const uint64_t length = in.length();
    if (in.named_key() != nullptr && in.named_key()->size() != 0) {
      PTERO_ASSIGN_OR_RETURN(out.named_key, reader_.read_text(in.named_key()));
      PTERO_REJECT_IF(out.offset != kNamedDataOffset, invalid_program,
                      "The constant has both the key {:?} and the offset {}.", out.named_key,
                      out.offset);
      const DataMap::Entry* entry = data_.find(out.named_key);
      PTERO_REJECT_IF(entry == nullptr, invalid_program,
                      "The key {:?} is not among the {} keys of the program's named data and its "
                      ".ptd files.",
                      out.named_key, data_.size());
      PTERO_REJECT_IF(length > entry->data.size(), invalid_program,
                      "The constant ({} bytes) is larger than the data of its key {:?} ({} bytes).",
                      length, out.named_key, entry->data.size());
      PTERO_ASSIGN_OR_RETURN(out.data, entry->data.subrange(0, length));
      return out;
    }
    const std::optional<uint64_t> end = checked_add(out.offset, length);
    PTERO_REJECT_IF(!end, invalid_program,
                    "The end of the constant at offset {} ({} bytes) does not fit in 64 bits.",
                    out.offset, length);
    // An empty constant may point behind the last byte.
    PTERO_REJECT_IF(length != 0 && *end > delegate_.constants.size(), invalid_program,
                    "The constant at offset {} ({} bytes) leaves the delegate's constant bytes "
                    "({}).",
                    out.offset, length, delegate_.constants.size());
    if (length != 0) {
      PTERO_ASSIGN_OR_RETURN(out.data, delegate_.constants.subrange(out.offset, length));
    }
    return out;
  }

  // ---- values ----

  Status read_values(const vk::VkGraph& in) {
    PTERO_RETURN_IF_ERROR(reader_.check_present(in.values(), "VkGraph.values"));
    value_count_ = in.values()->size();
    PTERO_RETURN_IF_ERROR(reader_.charge(value_count_, sizeof(GraphValue)));
    graph_.values.reserve(value_count_);
    for (const vk::VkValue* entry : *in.values()) {
      PTERO_ASSIGN_OR_RETURN(GraphValue value, read_value(*entry), "while reading value {}",
                             graph_.values.size());
      graph_.values.push_back(std::move(value));
    }
    // What lists refer to may come after them.
    for (size_t id = 0; id < graph_.values.size(); ++id) {
      PTERO_RETURN_IF_ERROR(check_list(id), "while reading value {}", id);
    }
    return ok_status();
  }

  Result<GraphValue> read_value(const vk::VkValue& in) {
    const vk::GraphTypes type = in.value_type();
    PTERO_REJECT_IF(type == vk::GraphTypes::NONE || type > vk::GraphTypes::MAX, invalid_program,
                    "The graph value's type ({}) is none that is known (1 to {}).",
                    static_cast<int>(type), static_cast<int>(vk::GraphTypes::MAX));
    PTERO_REJECT_IF(in.value() == nullptr && type != vk::GraphTypes::Null, invalid_program,
                    "The graph value of type {} has no content.", static_cast<int>(type));
    switch (type) {
      case vk::GraphTypes::NONE:
      case vk::GraphTypes::Null:
        return GraphValue(Null());
      case vk::GraphTypes::Int:
        return GraphValue(in.value_as_Int()->int_val());
      case vk::GraphTypes::Double:
        return GraphValue(in.value_as_Double()->double_val());
      case vk::GraphTypes::Bool:
        return GraphValue(in.value_as_Bool()->bool_val());
      case vk::GraphTypes::VkTensor: {
        PTERO_ASSIGN_OR_RETURN(GraphTensor tensor, read_tensor(*in.value_as_VkTensor()));
        return GraphValue(std::move(tensor));
      }
      case vk::GraphTypes::IntList: {
        const auto* items = in.value_as_IntList()->items();
        PTERO_RETURN_IF_ERROR(reader_.check_present(items, "vkgraph.IntList.items"));
        IntList list;
        PTERO_ASSIGN_OR_RETURN(list.items, reader_.read_numbers<int64_t>(items));
        return GraphValue(std::move(list));
      }
      case vk::GraphTypes::DoubleList: {
        const auto* items = in.value_as_DoubleList()->items();
        PTERO_RETURN_IF_ERROR(reader_.check_present(items, "vkgraph.DoubleList.items"));
        DoubleList list;
        PTERO_ASSIGN_OR_RETURN(list.items, reader_.read_numbers<double>(items));
        return GraphValue(std::move(list));
      }
      case vk::GraphTypes::BoolList: {
        const auto* items = in.value_as_BoolList()->items();
        PTERO_RETURN_IF_ERROR(reader_.check_present(items, "vkgraph.BoolList.items"));
        PTERO_RETURN_IF_ERROR(reader_.charge(items->size(), 1));
        return GraphValue(BoolList{std::vector<bool>(items->begin(), items->end())});
      }
      case vk::GraphTypes::ValueList: {
        const auto* items = in.value_as_ValueList()->items();
        PTERO_RETURN_IF_ERROR(reader_.check_present(items, "ValueList.items"));
        ValueIdList list;
        PTERO_ASSIGN_OR_RETURN(list.ids,
                               reader_.read_ids(items, value_count_, "ValueList.items", "values"));
        return GraphValue(std::move(list));
      }
      case vk::GraphTypes::String: {
        const flatbuffers::String* text = in.value_as_String()->string_val();
        PTERO_RETURN_IF_ERROR(reader_.check_present(text, "vkgraph.String.string_val"));
        PTERO_ASSIGN_OR_RETURN(std::string value, reader_.read_text(text));
        return GraphValue(std::move(value));
      }
      case vk::GraphTypes::SymInt:
        return GraphValue(SymInt{in.value_as_SymInt()->value()});
    }
    return GraphValue(Null());
  }

  // torch has no lists of lists, so forbidding them costs nothing and rules out every cycle.
  Status check_list(size_t id) const {
    const auto* list = std::get_if<ValueIdList>(&graph_.values[id]);
    if (list == nullptr) {
      return ok_status();
    }
    for (const uint32_t item : list->ids) {
      PTERO_REJECT_IF(item == id, invalid_program, "The ValueList (value {}) contains itself.", id);
      PTERO_REJECT_IF(std::holds_alternative<ValueIdList>(graph_.values[item]), invalid_program,
                      "The ValueList (value {}) contains another ValueList (value {}).", id, item);
    }
    return ok_status();
  }

  Result<GraphTensor> read_tensor(const vk::VkTensor& in) {
    GraphTensor out;
    out.dtype = static_cast<GraphDtype>(in.datatype());
    PTERO_REJECT_IF(!element_size(out.dtype), invalid_program,
                    "The tensor's datatype ({}) is none that is known.",
                    static_cast<int>(in.datatype()));
    out.staging_dtype = static_cast<GraphDtype>(in.staging_datatype());
    PTERO_REJECT_IF(name_of(out.staging_dtype).empty(), invalid_program,
                    "The tensor's staging_datatype ({}) is none that is known.",
                    static_cast<int>(in.staging_datatype()));
    // Hints that Ptero passes on and does not act upon; newer ones may appear.
    out.storage = static_cast<StorageType>(in.storage_type());
    out.layout = static_cast<MemoryLayout>(in.memory_layout());
    PTERO_RETURN_IF_ERROR(reader_.check_present(in.dims(), "VkTensor.dims"));
    PTERO_REJECT_IF(in.dims()->size() > kMaxRank, invalid_program,
                    "The rank ({}) of a graph tensor exceeds the limit ({}).", in.dims()->size(),
                    kMaxRank);
    PTERO_ASSIGN_OR_RETURN(out.dims, reader_.read_numbers<uint32_t>(in.dims()));
    const Result<uint64_t> bytes = tensor_bytes(out.dtype, out.dims);
    PTERO_REJECT_IF(!bytes.ok() || *bytes > kMaxTensorBytes, invalid_program,
                    "The graph tensor of type {} and dims [{}] exceeds the limit ({} bytes).",
                    name_of(out.dtype), fmt::join(out.dims, ", "), kMaxTensorBytes);
    if (in.constant_id() >= 0) {
      PTERO_ASSIGN_OR_RETURN(out.constant_id,
                             reader_.read_id(in.constant_id(), graph_.constants.size(),
                                             "VkTensor.constant_id", "constants"));
      const uint64_t stored = graph_.constants[*out.constant_id].data.size();
      PTERO_REJECT_IF(stored != *bytes, invalid_program,
                      "The graph tensor of type {} and dims [{}] takes {} bytes, but its constant "
                      "({}) has {}.",
                      name_of(out.dtype), fmt::join(out.dims, ", "), *bytes, *out.constant_id,
                      stored);
    }
    if (in.mem_obj_id() >= 0) {
      // Every memory object holds at least one value, so an honest id is below their number.
      PTERO_ASSIGN_OR_RETURN(out.mem_obj_id, reader_.read_id(in.mem_obj_id(), value_count_,
                                                             "VkTensor.mem_obj_id", "values"));
    }
    return out;
  }

  Status check_boundary(const std::vector<uint32_t>& ids, const char* direction) const {
    for (const uint32_t id : ids) {
      const GraphValue& value = graph_.values[id];
      PTERO_REJECT_IF(
          !std::holds_alternative<GraphTensor>(value) && !std::holds_alternative<SymInt>(value),
          invalid_program, "The graph's {} (value {}) is neither a tensor nor a SymInt.", direction,
          id);
    }
    return ok_status();
  }

  // ---- calls ----

  Status read_chain(const vk::VkGraph& in) {
    PTERO_RETURN_IF_ERROR(reader_.check_present(in.chain(), "VkGraph.chain"));
    PTERO_RETURN_IF_ERROR(reader_.charge(in.chain()->size(), sizeof(OperatorCall)));
    graph_.chain.reserve(in.chain()->size());
    for (const vk::OperatorCall* entry : *in.chain()) {
      PTERO_ASSIGN_OR_RETURN(OperatorCall call, read_call(*entry), "while reading call {}",
                             graph_.chain.size());
      graph_.chain.push_back(std::move(call));
    }
    return ok_status();
  }

  Result<OperatorCall> read_call(const vk::OperatorCall& in) {
    OperatorCall out;
    out.node_id = in.node_id();
    PTERO_ASSIGN_OR_RETURN(out.name, reader_.read_name(in.name(), "OperatorCall.name"));
    PTERO_RETURN_IF_ERROR(reader_.check_present(in.args(), "OperatorCall.args"));
    PTERO_ASSIGN_OR_RETURN(
        out.args, reader_.read_ids(in.args(), value_count_, "OperatorCall.args", "values"));
    const OperatorSignature* signature = find_operator_signature(out.name);
    if (signature == nullptr) {
      return out;
    }
    PTERO_REJECT_IF(out.args.size() < signature->min_args || out.args.size() > signature->max_args,
                    invalid_program, "The operator {} has {} arguments instead of {} to {}.",
                    out.name, out.args.size(), signature->min_args, signature->max_args);
    PTERO_RETURN_IF_ERROR(check_packing(graph_, out));
    return out;
  }

  const Delegate& delegate_;
  const DataMap& data_;
  FieldReader reader_;
  Graph graph_;
  size_t value_count_ = 0;
};

}  // namespace

Result<Graph> read_graph(const Delegate& delegate, const DataMap& data) {
  PTERO_ASSIGN_OR_RETURN(const FlatbufferBytes bytes,
                         FlatbufferBytes::load(delegate.graph, "graph"));
  PTERO_REJECT_IF(bytes.identifier() != vk::VkGraphIdentifier(), invalid_program,
                  "The graph's identifier is {:?} instead of {:?}.", bytes.identifier(),
                  vk::VkGraphIdentifier());
  PTERO_ASSIGN_OR_RETURN(const vk::VkGraph* in, verified_root<vk::VkGraph>(bytes, "graph"));
  return GraphReader(delegate, data).read(*in);
}

}  // namespace ptero::pte
