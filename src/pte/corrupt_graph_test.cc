// SPDX-License-Identifier: BSD-3-Clause
// Lies in the delegate's VH00 header and in its VK00 graph.
#include "pte/corrupt_cases.h"

namespace ptero::pte::test {
namespace {

namespace fg = fbs::vkgraph;

void drop_items(ModelFile& file, size_t id, flatbuffers::voffset_t slot) {
  drop(reinterpret_cast<const flatbuffers::Table*>(file.graph_value(id)->value()), slot);
}

const fg::VkBytes* constant(ModelFile& file, uint32_t index) {
  return file.graph()->constants()->Get(index);
}

constexpr Corruption kCorruptions[] = {
    {"delegate of 29 bytes",
     [](ModelFile& file) {
       set(file.program()->segments()->Get(1), fbs::program::DataSegment::VT_SIZE, uint64_t{29});
     },
     "The delegate (29 bytes) is shorter than its VH00 header (30 bytes)."},
    {"delegate of another backend", [](ModelFile& file) { file.put(file.blob() + 4, 0x30304858); },
     "The delegate's magic is \"XH00\" instead of \"VH00\".", ErrorCode::unsupported},
    {"delegate header size", [](ModelFile& file) { file.put(file.blob() + 8, uint16_t{29}); },
     "The header field header_size (29) is below 30."},
    {"graph inside the header", [](ModelFile& file) { file.put(file.blob() + 10, 8); },
     "The header field flatbuffer_offset (8) is inside the header (30 bytes)."},
    {"graph of no bytes", [](ModelFile& file) { file.put(file.blob() + 14, 0); },
     "The header field flatbuffer_size is 0."},
    {"graph offset of all ones", [](ModelFile& file) { file.put(file.blob() + 10, UINT32_MAX); },
     "The graph (flatbuffer_offset 4294967295, flatbuffer_size {graph}) leaves the delegate "
     "({delegate} "
     "bytes)."},
    {"graph size of all ones", [](ModelFile& file) { file.put(file.blob() + 14, UINT32_MAX); },
     "The graph (flatbuffer_offset 32, flatbuffer_size 4294967295) leaves the delegate ({delegate} "
     "bytes)."},
    {"graph of four bytes", [](ModelFile& file) { file.put(file.blob() + 14, 4); },
     "The flatbuffer of the graph (4 bytes) is shorter than 8 bytes."},
    {"constants inside the graph", [](ModelFile& file) { file.put(file.blob() + 18, 64); },
     "The header field bytes_offset (64) is before the end of the graph ({behind})."},
    {"constants behind the delegate",
     [](ModelFile& file) { file.put(file.blob() + 18, UINT32_MAX); },
     "The header field bytes_offset (4294967295) exceeds the delegate ({delegate} bytes)."},
    {"constants wrap", [](ModelFile& file) { file.put(file.blob() + 22, UINT64_MAX); },
     "The header field bytes_size (18446744073709551615) exceeds the 176 bytes behind bytes_offset "
     "({behind})."},

    {"graph identifier",
     [](ModelFile& file) { file.put(file.blob() + kVhHeaderSize + 4, 0x31304b56); },
     "The graph's identifier is \"VK01\" instead of \"VK00\"."},
    {"graph root outside", [](ModelFile& file) { file.put(file.blob() + kVhHeaderSize, -1); },
     "The flatbuffer of the graph ({graph} bytes) is damaged: it points outside of itself, nests "
     "deeper than 24 levels or holds more than 1000000 tables."},
    {"graph without a chain", [](ModelFile& file) { drop(file.graph(), fg::VkGraph::VT_CHAIN); },
     "The field VkGraph.chain is absent."},
    {"graph without values", [](ModelFile& file) { drop(file.graph(), fg::VkGraph::VT_VALUES); },
     "The field VkGraph.values is absent."},
    {"graph without inputs", [](ModelFile& file) { drop(file.graph(), fg::VkGraph::VT_INPUT_IDS); },
     "The field VkGraph.input_ids is absent."},
    {"graph without outputs",
     [](ModelFile& file) { drop(file.graph(), fg::VkGraph::VT_OUTPUT_IDS); },
     "The field VkGraph.output_ids is absent."},
    {"graph input past the end",
     [](ModelFile& file) { set_item(file.graph()->input_ids(), 1, uint32_t{19}); },
     "The id (19) at position 1 of VkGraph.input_ids is not among the 19 values."},
    {"graph output of all ones",
     [](ModelFile& file) { set_item(file.graph()->output_ids(), 0, UINT32_MAX); },
     "The id (4294967295) at position 0 of VkGraph.output_ids is not among the 19 values."},
    {"graph input that is a list",
     [](ModelFile& file) { set_item(file.graph()->input_ids(), 0, uint32_t{kList}); },
     "The graph's input (value 6) is neither a tensor nor a SymInt."},
    {"graph output that is a string",
     [](ModelFile& file) { set_item(file.graph()->output_ids(), 1, uint32_t{kGraphString}); },
     "The graph's output (value 11) is neither a tensor nor a SymInt."},
    {"graph value without a type",
     [](ModelFile& file) { set(file.graph_value(kSym), fg::VkValue::VT_VALUE_TYPE, uint8_t{0}); },
     "The graph value's type (0) is none that is known (1 to 11)."},
    {"graph value of type 12",
     [](ModelFile& file) { set(file.graph_value(kSym), fg::VkValue::VT_VALUE_TYPE, uint8_t{12}); },
     "The graph value's type (12) is none that is known (1 to 11)."},
    {"graph tensor without content",
     [](ModelFile& file) { drop(file.graph_value(kX), fg::VkValue::VT_VALUE); },
     "The graph value of type 5 has no content."},
    {"graph int list without items",
     [](ModelFile& file) { drop_items(file, kGraphIntList, fg::IntList::VT_ITEMS); },
     "The field vkgraph.IntList.items is absent."},
    {"graph double list without items",
     [](ModelFile& file) { drop_items(file, kGraphDoubleList, fg::DoubleList::VT_ITEMS); },
     "The field vkgraph.DoubleList.items is absent."},
    {"graph bool list without items",
     [](ModelFile& file) { drop_items(file, kGraphBoolList, fg::BoolList::VT_ITEMS); },
     "The field vkgraph.BoolList.items is absent."},
    {"value list without items",
     [](ModelFile& file) { drop_items(file, kList, fg::ValueList::VT_ITEMS); },
     "The field ValueList.items is absent."},
    {"graph string without text",
     [](ModelFile& file) { drop_items(file, kGraphString, fg::String::VT_STRING_VAL); },
     "The field vkgraph.String.string_val is absent."},
    {"value list item negative",
     [](ModelFile& file) {
       set_item(file.graph_value(kList)->value_as_ValueList()->items(), 0, -1);
     },
     "The id (-1) at position 0 of ValueList.items is not among the 19 values."},
    {"value list that contains itself",
     [](ModelFile& file) {
       set_item(file.graph_value(kList)->value_as_ValueList()->items(), 1, int32_t{kList});
     },
     "The ValueList (value 6) contains itself."},

    {"datatype 8",
     [](ModelFile& file) { set(file.graph_tensor(kX), fg::VkTensor::VT_DATATYPE, int8_t{8}); },
     "The tensor's datatype (8) is none that is known."},
    {"datatype unset",
     [](ModelFile& file) { set(file.graph_tensor(kX), fg::VkTensor::VT_DATATYPE, int8_t{127}); },
     "The tensor's datatype (127) is none that is known."},
    {"staging datatype -1",
     [](ModelFile& file) {
       set(file.graph_tensor(kX), fg::VkTensor::VT_STAGING_DATATYPE, int8_t{-1});
     },
     "The tensor's staging_datatype (-1) is none that is known."},
    {"graph tensor without dims",
     [](ModelFile& file) { drop(file.graph_tensor(kX), fg::VkTensor::VT_DIMS); },
     "The field VkTensor.dims is absent."},
    {"graph tensor of 2^31 by 2^31",
     [](ModelFile& file) {
       set_item(file.graph_tensor(kX)->dims(), 0, uint32_t{1} << 31);
       set_item(file.graph_tensor(kX)->dims(), 1, uint32_t{1} << 31);
     },
     "The graph tensor of type float32 and dims [2147483648, 2147483648] exceeds the limit "
     "(1099511627776 bytes)."},
    {"constant id past the end",
     [](ModelFile& file) {
       set(file.graph_tensor(kWeight), fg::VkTensor::VT_CONSTANT_ID, int32_t{5});
     },
     "The id VkTensor.constant_id (5) is not among the 5 constants."},
    {"memory object id 2^30",
     [](ModelFile& file) {
       set(file.graph_tensor(kY), fg::VkTensor::VT_MEM_OBJ_ID, int32_t{1} << 30);
     },
     "The id VkTensor.mem_obj_id (1073741824) is not among the 19 values."},
    {"constant of another length than its tensor",
     [](ModelFile& file) { set_item(file.graph_tensor(kWeight)->dims(), 0, uint32_t{5}); },
     "The graph tensor of type uint8 and dims [5, 4] takes 20 bytes, but its constant (0) has 16."},
    {"tensor that points at another's constant",
     [](ModelFile& file) {
       set(file.graph_tensor(kBias), fg::VkTensor::VT_CONSTANT_ID, int32_t{3});
     },
     "The graph tensor of type float32 and dims [4] takes 16 bytes, but its constant (3) has "
     "128."},

    {"constant with a key that is not there",
     [](ModelFile& file) { set_text(constant(file, 0)->named_key(), "weighT"); },
     "The key \"weighT\" is not among the 2 keys of the program's named data and its .ptd files."},
    {"constant longer than its named data",
     [](ModelFile& file) { set(constant(file, 0), fg::VkBytes::VT_LENGTH, uint64_t{17}); },
     "The constant (17 bytes) is larger than the data of its key \"weight\" (16 bytes)."},
    {"named data shorter than its constant",
     [](ModelFile& file) {
       set(file.program()->segments()->Get(4), fbs::program::DataSegment::VT_SIZE, uint64_t{63});
     },
     "The constant (64 bytes) is larger than the data of its key \"table.\" (63 bytes)."},
    {"constant with a key and an offset",
     [](ModelFile& file) { set(constant(file, 0), fg::VkBytes::VT_OFFSET, uint64_t{0}); },
     "The constant has both the key \"weight\" and the offset 0."},
    {"constant without a key at offset -1",
     [](ModelFile& file) { drop(constant(file, 0), fg::VkBytes::VT_NAMED_KEY); },
     "The end of the constant at offset 18446744073709551615 (16 bytes) does not fit in 64 bits."},
    {"inline constant past the end",
     [](ModelFile& file) { set(constant(file, 4), fg::VkBytes::VT_OFFSET, uint64_t{161}); },
     "The constant at offset 161 (16 bytes) leaves the delegate's constant bytes (176)."},
    {"inline constant of 2^63 bytes",
     [](ModelFile& file) { set(constant(file, 1), fg::VkBytes::VT_LENGTH, uint64_t{1} << 63); },
     "The constant at offset 0 (9223372036854775808 bytes) leaves the delegate's constant bytes "
     "(176)."},
    {"old file whose named data is gone",
     [](ModelFile& file) { file = ModelFile({.inline_data = true}); },
     "The key \"weight\" is not among the 0 keys of the program's named data and its .ptd files."},

    {"call without a name",
     [](ModelFile& file) { drop(file.graph_call(kLinear), fg::OperatorCall::VT_NAME); },
     "The name OperatorCall.name is absent or empty."},
    {"call without arguments",
     [](ModelFile& file) { drop(file.graph_call(kUnknownCall), fg::OperatorCall::VT_ARGS); },
     "The field OperatorCall.args is absent."},
    {"call argument negative",
     [](ModelFile& file) { set_item(file.graph_call(kUnknownCall)->args(), 2, -1); },
     "The id (-1) at position 2 of OperatorCall.args is not among the 19 values."},
    {"call argument past the end",
     [](ModelFile& file) { set_item(file.graph_call(kLinear)->args(), 0, 19); },
     "The id (19) at position 0 of OperatorCall.args is not among the 19 values."},
    {"linear with five arguments",
     [](ModelFile& file) { set_length(file.graph_call(kLinear)->args(), 5); },
     "The operator et_vk.linear_q4gsw.default has 5 arguments instead of 6 to 6."},
    {"linear with no arguments",
     [](ModelFile& file) { set_length(file.graph_call(kLinear)->args(), 0); },
     "The operator et_vk.linear_q4gsw.default has 0 arguments instead of 6 to 6."},
};

}  // namespace

std::span<const Corruption> graph_corruptions() {
  return kCorruptions;
}

}  // namespace ptero::pte::test
