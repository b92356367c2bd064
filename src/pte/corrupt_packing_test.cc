// SPDX-License-Identifier: BSD-3-Clause
// Lies about packed 4-bit weights. The tensors keep the byte lengths of their constants, so that
// nothing but the operator's own rules can notice.
#include "pte/corrupt_cases.h"

namespace ptero::pte::test {
namespace {

namespace fg = fbs::vkgraph;

void set_dims(ModelFile& file, size_t id, uint32_t first, uint32_t second) {
  set_item(file.graph_tensor(id)->dims(), 0, first);
  set_item(file.graph_tensor(id)->dims(), 1, second);
}

void set_arg(ModelFile& file, size_t call, size_t index, size_t id) {
  set_item(file.graph_call(call)->args(), index, static_cast<int32_t>(id));
}

void set_group_size(ModelFile& file, int64_t size) {
  set(file.graph_value(kGroupSize)->value_as_Int(), fg::Int::VT_INT_VAL, size);
}

constexpr Corruption kCorruptions[] = {
    {"group size 0", [](ModelFile& file) { set_group_size(file, 0); },
     "The group size of et_vk.linear_q4gsw.default (value 3) is not a whole number above 0."},
    {"group size negative", [](ModelFile& file) { set_group_size(file, -32); },
     "The group size of et_vk.linear_q4gsw.default (value 3) is not a whole number above 0."},
    {"group size 2^63-1", [](ModelFile& file) { set_group_size(file, INT64_MAX); },
     "The scales of et_vk.linear_q4gsw.default have 2 groups, but 8 values in groups of "
     "9223372036854775807 take 1."},
    {"group size of another weight", [](ModelFile& file) { set_group_size(file, 8); },
     "The scales of et_vk.linear_q4gsw.default have 2 groups, but 8 values in groups of 8 take 1."},
    {"group size 3", [](ModelFile& file) { set_group_size(file, 3); },
     "The scales of et_vk.linear_q4gsw.default have 2 groups, but 8 values in groups of 3 take 3."},
    {"group size that is a fraction",
     [](ModelFile& file) {
       set_arg(file, kLinear, 3, kGraphDouble);
       set(file.graph_value(kGraphDouble)->value_as_Double(), fg::Double::VT_DOUBLE_VAL, 4.5);
     },
     "The group size of et_vk.linear_q4gsw.default (value 12) is not a whole number above 0."},
    {"group size that is no number", [](ModelFile& file) { set_arg(file, kLinear, 3, kSym); },
     "The group size of et_vk.linear_q4gsw.default (value 7) is no number."},
    {"weight that is no tensor", [](ModelFile& file) { set_arg(file, kLinear, 1, kGraphNull); },
     "Argument 1 of et_vk.linear_q4gsw.default (value 4) is no tensor but has to be its weight."},
    {"scales that are no tensor", [](ModelFile& file) { set_arg(file, kLinear, 2, kList); },
     "Argument 2 of et_vk.linear_q4gsw.default (value 6) is no tensor but has to be its scales."},
    {"input that is no tensor", [](ModelFile& file) { set_arg(file, kLinear, 0, kGraphBool); },
     "Argument 0 of et_vk.linear_q4gsw.default (value 13) is no tensor but has to be its input."},
    {"output that is no tensor", [](ModelFile& file) { set_arg(file, kLinear, 5, kSym); },
     "Argument 5 of et_vk.linear_q4gsw.default (value 7) is no tensor but has to be its output."},
    {"bias that is no tensor", [](ModelFile& file) { set_arg(file, kLinear, 4, kSym); },
     "Argument 4 of et_vk.linear_q4gsw.default (value 7) is no tensor but has to be its bias."},
    {"input without dimensions",
     [](ModelFile& file) { set_length(file.graph_tensor(kX)->dims(), 0); },
     "The operator et_vk.linear_q4gsw.default has a tensor without dimensions as its input."},
    {"weight of another type",
     [](ModelFile& file) { set(file.graph_tensor(kWeight), fg::VkTensor::VT_DATATYPE, int8_t{2}); },
     "The weight of et_vk.linear_q4gsw.default has type int8 and rank 2 instead of uint8 and 2."},
    {"weight of rank 1",
     [](ModelFile& file) {
       set_length(file.graph_tensor(kWeight)->dims(), 1);
       set_item(file.graph_tensor(kWeight)->dims(), 0, uint32_t{16});
     },
     "The weight of et_vk.linear_q4gsw.default has type uint8 and rank 1 instead of uint8 and 2."},
    {"weight rows too short", [](ModelFile& file) { set_dims(file, kWeight, 8, 2); },
     "The weight rows of et_vk.linear_q4gsw.default have 2 bytes, but 8 4-bit values take 4."},
    {"input wider than the weight",
     [](ModelFile& file) { set_item(file.graph_tensor(kX)->dims(), 1, uint32_t{9}); },
     "The weight rows of et_vk.linear_q4gsw.default have 4 bytes, but 9 4-bit values take 8."},
    {"output of another width", [](ModelFile& file) { set_dims(file, kY, 2, 5); },
     "The output of et_vk.linear_q4gsw.default has 5 columns, but its weight has 4 rows."},
    {"scales of rank 1",
     [](ModelFile& file) {
       set_length(file.graph_tensor(kScales)->dims(), 1);
       set_item(file.graph_tensor(kScales)->dims(), 0, uint32_t{8});
     },
     "The scales of et_vk.linear_q4gsw.default have rank 1 instead of 2."},
    {"scales transposed", [](ModelFile& file) { set_dims(file, kScales, 4, 2); },
     "The scales of et_vk.linear_q4gsw.default have 4 groups, but 8 values in groups of 4 take 2."},
    {"scales of fewer rows",
     [](ModelFile& file) {
       set_group_size(file, 2);
       set_dims(file, kScales, 4, 2);
     },
     "The scales of et_vk.linear_q4gsw.default cover 2 rows of a weight with 4."},
    {"bias too short",
     [](ModelFile& file) {
       set_item(file.graph_tensor(kBias)->dims(), 0, uint32_t{2});
       set(file.graph()->constants()->Get(4), fg::VkBytes::VT_LENGTH, uint64_t{8});
     },
     "The bias of et_vk.linear_q4gsw.default has dims [2] for 4 weight rows."},
    {"embedding scales of fewer rows", [](ModelFile& file) { set_dims(file, kTableScales, 8, 4); },
     "The scales of et_vk.embedding_q4gsw.default have 4 groups, but 8 values in groups of 4 take "
     "2."},
    {"embedding rows wider than the table", [](ModelFile& file) { set_dims(file, kRows, 3, 32); },
     "The weight rows of et_vk.embedding_q4gsw.default have 4 bytes, but 32 4-bit values take "
     "16."},
    {"channel scales of rank 2", [](ModelFile& file) { set_arg(file, kChannelLinear, 2, kScales); },
     "The scales of et_vk.linear_qcs4w.default have dims [2, 4] for 4 weight rows."},
};

}  // namespace

std::span<const Corruption> packing_corruptions() {
  return kCorruptions;
}

}  // namespace ptero::pte::test
