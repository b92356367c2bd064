// SPDX-License-Identifier: BSD-3-Clause
// Lies in a plan's values: types, lists, tensors and where their bytes are.
#include "pte/corrupt_cases.h"

namespace ptero::pte::test {
namespace {

namespace fb = fbs::program;

void drop_items(ModelFile& file, size_t id, flatbuffers::voffset_t slot) {
  drop(reinterpret_cast<const flatbuffers::Table*>(file.value(id)->val()), slot);
}

constexpr Corruption kCorruptions[] = {
    {"value without a type",
     [](ModelFile& file) { set(file.value(kInt), fb::EValue::VT_VAL_TYPE, uint8_t{0}); },
     "The value's type (0) is none that is known (1 to 11)."},
    {"value of type 12",
     [](ModelFile& file) { set(file.value(kInt), fb::EValue::VT_VAL_TYPE, uint8_t{12}); },
     "The value's type (12) is none that is known (1 to 11)."},
    {"value of type 255",
     [](ModelFile& file) { set(file.value(kInt), fb::EValue::VT_VAL_TYPE, uint8_t{255}); },
     "The value's type (255) is none that is known (1 to 11)."},
    {"tensor value without content",
     [](ModelFile& file) { drop(file.value(kInput), fb::EValue::VT_VAL); },
     "The value of type 5 has no content."},
    {"int value without content",
     [](ModelFile& file) { drop(file.value(kInt), fb::EValue::VT_VAL); },
     "The value of type 2 has no content."},
    {"null string", [](ModelFile& file) { drop_items(file, kString, fb::String::VT_STRING_VAL); },
     "The field String.string_val is absent."},
    {"int list without items",
     [](ModelFile& file) { drop_items(file, kIntList, fb::IntList::VT_ITEMS); },
     "The field IntList.items is absent."},
    {"double list without items",
     [](ModelFile& file) { drop_items(file, kDoubleList, fb::DoubleList::VT_ITEMS); },
     "The field DoubleList.items is absent."},
    {"bool list without items",
     [](ModelFile& file) { drop_items(file, kBoolList, fb::BoolList::VT_ITEMS); },
     "The field BoolList.items is absent."},
    {"tensor list without items",
     [](ModelFile& file) { drop_items(file, kTensorList, fb::TensorList::VT_ITEMS); },
     "The field TensorList.items is absent."},
    {"optional list without items",
     [](ModelFile& file) { drop_items(file, kOptionalList, fb::OptionalTensorList::VT_ITEMS); },
     "The field OptionalTensorList.items is absent."},
    {"int list item 2^40",
     [](ModelFile& file) {
       set_item(file.value(kIntList)->val_as_IntList()->items(), 1, int64_t{1} << 40);
     },
     "The id (1099511627776) at position 1 of IntList.items is not among the 16 values."},
    {"int list item negative",
     [](ModelFile& file) {
       set_item(file.value(kIntList)->val_as_IntList()->items(), 0, int64_t{-1});
     },
     "The id (-1) at position 0 of IntList.items is not among the 16 values."},
    {"int list names itself",
     [](ModelFile& file) {
       set_item(file.value(kIntList)->val_as_IntList()->items(), 0, int64_t{kIntList});
     },
     "The IntList names value 9, which is no Int."},
    {"tensor list item past the end",
     [](ModelFile& file) {
       set_item(file.value(kTensorList)->val_as_TensorList()->items(), 1, int32_t{16});
     },
     "The id (16) at position 1 of TensorList.items is not among the 16 values."},
    {"tensor list names itself",
     [](ModelFile& file) {
       set_item(file.value(kTensorList)->val_as_TensorList()->items(), 0, int32_t{kTensorList});
     },
     "The TensorList names value 12, which is no Tensor."},
    {"optional list item -2",
     [](ModelFile& file) {
       set_item(file.value(kOptionalList)->val_as_OptionalTensorList()->items(), 0, -2);
     },
     "The id OptionalTensorList.items (-2) is not among the 16 values."},
    {"optional list names itself",
     [](ModelFile& file) {
       set_item(file.value(kOptionalList)->val_as_OptionalTensorList()->items(), 0,
                int32_t{kOptionalList});
     },
     "The OptionalTensorList names value 13, which is neither Tensor nor Null."},

    {"scalar type 8",
     [](ModelFile& file) { set(file.tensor(kInput), fb::Tensor::VT_SCALAR_TYPE, int8_t{8}); },
     "The tensor's scalar type (8) is none that is known."},
    {"scalar type -1",
     [](ModelFile& file) { set(file.tensor(kInput), fb::Tensor::VT_SCALAR_TYPE, int8_t{-1}); },
     "The tensor's scalar type (-1) is none that is known."},
    {"packed scalar type",
     [](ModelFile& file) { set(file.tensor(kInput), fb::Tensor::VT_SCALAR_TYPE, int8_t{16}); },
     "The tensor's scalar type (quint4x2) packs several elements into a byte.",
     ErrorCode::unsupported},
    {"tensor without sizes",
     [](ModelFile& file) { drop(file.tensor(kInput), fb::Tensor::VT_SIZES); },
     "The field Tensor.sizes is absent."},
    {"tensor without a dim order",
     [](ModelFile& file) { drop(file.tensor(kInput), fb::Tensor::VT_DIM_ORDER); },
     "The field Tensor.dim_order is absent."},
    {"rank 10,000", [](ModelFile& file) { file = ModelFile({.rank = 10'000}); },
     "The rank (10000) of a tensor exceeds the limit (16)."},
    {"rank 17", [](ModelFile& file) { file = ModelFile({.rank = 17}); },
     "The rank (17) of a tensor exceeds the limit (16)."},
    {"dim order too short",
     [](ModelFile& file) { set_length(file.tensor(kInput)->dim_order(), 1); },
     "The dim order has 1 entries for a tensor of rank 2."},
    {"dim order without sizes",
     [](ModelFile& file) { set_length(file.tensor(kInput)->sizes(), 0); },
     "The dim order has 2 entries for a tensor of rank 0."},
    {"negative size",
     [](ModelFile& file) { set_item(file.tensor(kInput)->sizes(), 1, int32_t{-8}); },
     "The size (-8) of dimension 1 is negative."},
    {"dim order past the rank",
     [](ModelFile& file) { set_item(file.tensor(kInput)->dim_order(), 0, uint8_t{255}); },
     "The dim order names dimension 255 of a tensor of rank 2."},
    {"dim order with a dimension twice",
     [](ModelFile& file) { set_item(file.tensor(kInput)->dim_order(), 0, uint8_t{1}); },
     "The dim order names dimension 1 twice."},
    {"sizes 2^31-1 twice",
     [](ModelFile& file) {
       set_item(file.tensor(kInput)->sizes(), 0, INT32_MAX);
       set_item(file.tensor(kInput)->sizes(), 1, INT32_MAX);
     },
     "The tensor of type float32 and sizes [2147483647, 2147483647] exceeds the limit "
     "(1099511627776 bytes)."},
    {"sizes whose product wraps to 0",
     [](ModelFile& file) {
       file = ModelFile({.rank = 16});
       for (size_t i = 0; i < 16; ++i) {
         set_item(file.tensor(kInput)->sizes(), i, int32_t{65536});
       }
     },
     "The tensor of type float32 and sizes [65536, 65536, 65536, 65536, 65536, 65536, 65536, "
     "65536, 65536, 65536, 65536, 65536, 65536, 65536, 65536, 65536] exceeds the limit "
     "(1099511627776 bytes)."},
    {"storage offset",
     [](ModelFile& file) { set(file.tensor(kInput), fb::Tensor::VT_STORAGE_OFFSET, int32_t{-4}); },
     "The storage offset (-4) is not 0.", ErrorCode::unsupported},
    {"shape dynamism 3",
     [](ModelFile& file) { set(file.tensor(kInput), fb::Tensor::VT_SHAPE_DYNAMISM, int8_t{3}); },
     "The shape dynamism (3) is none that is known (0 to 2)."},
    {"shape dynamism -1",
     [](ModelFile& file) { set(file.tensor(kInput), fb::Tensor::VT_SHAPE_DYNAMISM, int8_t{-1}); },
     "The shape dynamism (-1) is none that is known (0 to 2)."},
    {"data location 2",
     [](ModelFile& file) {
       set(file.tensor(kExternal)->extra_tensor_info(), fb::ExtraTensorInfo::VT_LOCATION,
           int8_t{2});
     },
     "The tensor's data location (2) is none that is known (0 to 1)."},
    {"external tensor without a name",
     [](ModelFile& file) {
       drop(file.tensor(kExternal)->extra_tensor_info(),
            fb::ExtraTensorInfo::VT_FULLY_QUALIFIED_NAME);
     },
     "The tensor's data is external but it has no fully_qualified_name."},
    {"device type 9",
     [](ModelFile& file) {
       set(file.tensor(kExternal)->extra_tensor_info(), fb::ExtraTensorInfo::VT_DEVICE_TYPE,
           int8_t{9});
     },
     "The device type (9) is none that is known (0 to 1).", ErrorCode::unsupported},

    {"memory id 0",
     [](ModelFile& file) {
       set(file.tensor(kPlanned)->allocation_info(), fb::AllocationDetails::VT_MEMORY_ID,
           uint32_t{0});
     },
     "The memory id is 0, which no tensor is planned in."},
    {"memory id 2^30",
     [](ModelFile& file) {
       set(file.tensor(kPlanned)->allocation_info(), fb::AllocationDetails::VT_MEMORY_ID,
           uint32_t{1} << 30);
     },
     "The memory id (1073741824) is not among the 2 planned memories."},
    {"planned tensor behind its memory",
     [](ModelFile& file) {
       set(file.tensor(kPlanned)->allocation_info(), fb::AllocationDetails::VT_MEMORY_OFFSET_LOW,
           uint32_t{33});
     },
     "The tensor (64 bytes at offset 33) leaves planned memory 1 (96 bytes)."},
    {"planned offset wraps",
     [](ModelFile& file) {
       const auto* allocation = file.tensor(kPlanned)->allocation_info();
       set(allocation, fb::AllocationDetails::VT_MEMORY_OFFSET_LOW, UINT32_MAX - 15);
       set(allocation, fb::AllocationDetails::VT_MEMORY_OFFSET_HIGH, UINT32_MAX);
     },
     "The tensor (64 bytes at offset 18446744073709551600) leaves planned memory 1 (96 bytes)."},
    {"mutable data segment past the end",
     [](ModelFile& file) {
       set(file.tensor(kMutable)->extra_tensor_info(),
           fb::ExtraTensorInfo::VT_MUTABLE_DATA_SEGMENTS_IDX, UINT64_MAX);
     },
     "The tensor's mutable_data_segments_idx (18446744073709551615) is not among the 2 mutable "
     "data segments."},
    {"mutable data buffer past the end",
     [](ModelFile& file) {
       set(file.tensor(kMutable), fb::Tensor::VT_DATA_BUFFER_IDX, uint32_t{2});
     },
     "The tensor's data_buffer_idx (2) is not among the 2 offsets of segment 2."},
    {"constant past the offsets",
     [](ModelFile& file) {
       set(file.tensor(kConstant), fb::Tensor::VT_DATA_BUFFER_IDX, UINT32_MAX);
     },
     "The tensor's data_buffer_idx (4294967295) is not among the 2 offsets of segment 0."},
    {"constant longer than its segment",
     [](ModelFile& file) { set_item(file.tensor(kConstant)->sizes(), 0, int32_t{5}); },
     "The tensor (20 bytes at offset 16) leaves segment 0 (32 bytes)."},
    {"constant past the inline buffers",
     [](ModelFile& file) {
       file = ModelFile({.inline_data = true});
       set(file.tensor(kConstant), fb::Tensor::VT_DATA_BUFFER_IDX, uint32_t{2});
     },
     "The tensor's data_buffer_idx (2) is not among the 2 constant buffers."},
    {"constant longer than its inline buffer",
     [](ModelFile& file) {
       file = ModelFile({.inline_data = true});
       set_item(file.tensor(kConstant)->sizes(), 0, int32_t{5});
     },
     "The tensor (20 bytes) is larger than constant buffer 1 (16 bytes)."},
    {"inline buffer without bytes",
     [](ModelFile& file) {
       file = ModelFile({.inline_data = true});
       drop(file.program()->constant_buffer()->Get(1), fb::Buffer::VT_STORAGE);
     },
     "The tensor (16 bytes) is larger than constant buffer 1 (0 bytes)."},
};

}  // namespace

std::span<const Corruption> value_corruptions() {
  return kCorruptions;
}

}  // namespace ptero::pte::test
