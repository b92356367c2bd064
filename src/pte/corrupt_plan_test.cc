// SPDX-License-Identifier: BSD-3-Clause
// Lies in a plan's methods, memories, operators, delegates and instructions.
#include "pte/corrupt_cases.h"

namespace ptero::pte::test {
namespace {

namespace fb = fbs::program;

using Plan = fb::ExecutionPlan;

constexpr Corruption kCorruptions[] = {
    {"method without a name", [](ModelFile& file) { drop(file.plan(), Plan::VT_NAME); },
     "The name ExecutionPlan.name is absent or empty."},
    {"plan without values", [](ModelFile& file) { drop(file.plan(), Plan::VT_VALUES); },
     "The field ExecutionPlan.values is absent."},
    {"plan without inputs", [](ModelFile& file) { drop(file.plan(), Plan::VT_INPUTS); },
     "The field ExecutionPlan.inputs is absent."},
    {"plan without outputs", [](ModelFile& file) { drop(file.plan(), Plan::VT_OUTPUTS); },
     "The field ExecutionPlan.outputs is absent."},
    {"plan without chains", [](ModelFile& file) { drop(file.plan(), Plan::VT_CHAINS); },
     "The field ExecutionPlan.chains is absent."},
    {"plan without planned memories",
     [](ModelFile& file) { drop(file.plan(), Plan::VT_NON_CONST_BUFFER_SIZES); },
     "The field ExecutionPlan.non_const_buffer_sizes is absent."},
    {"plan input negative", [](ModelFile& file) { set_item(file.plan()->inputs(), 0, -1); },
     "The id (-1) at position 0 of ExecutionPlan.inputs is not among the 16 values."},
    {"plan output past the end", [](ModelFile& file) { set_item(file.plan()->outputs(), 0, 16); },
     "The id (16) at position 0 of ExecutionPlan.outputs is not among the 16 values."},
    {"planned memory of negative size",
     [](ModelFile& file) { set_item(file.plan()->non_const_buffer_sizes(), 1, int64_t{-96}); },
     "The size (-96) of planned memory 1 is not between 0 and 1099511627776 bytes."},
    {"planned memory of 2^62 bytes",
     [](ModelFile& file) { set_item(file.plan()->non_const_buffer_sizes(), 0, int64_t{1} << 62); },
     "The size (4611686018427387904) of planned memory 0 is not between 0 and 1099511627776 "
     "bytes."},
    {"device of a memory that is not there",
     [](ModelFile& file) {
       set(file.plan()->non_const_buffer_device()->Get(0), fb::NonConstBufferDevice::VT_BUFFER_IDX,
           int32_t{-1});
     },
     "The id NonConstBufferDevice.buffer_idx (-1) is not among the 2 planned memories."},
    {"memory on device type -1",
     [](ModelFile& file) {
       set(file.plan()->non_const_buffer_device()->Get(0), fb::NonConstBufferDevice::VT_DEVICE_TYPE,
           int8_t{-1});
     },
     "The device type (-1) is none that is known (0 to 1).", ErrorCode::unsupported},

    {"operator without a name",
     [](ModelFile& file) { drop(file.plan()->operators()->Get(0), fb::Operator::VT_NAME); },
     "The name Operator.name is absent or empty."},
    {"delegate without an id",
     [](ModelFile& file) { drop(file.delegate(0), fb::BackendDelegate::VT_ID); },
     "The name BackendDelegate.id is absent or empty."},
    {"delegate without data",
     [](ModelFile& file) { drop(file.delegate(0), fb::BackendDelegate::VT_PROCESSED); },
     "The field BackendDelegate.processed is absent."},
    {"delegate data location 2",
     [](ModelFile& file) {
       set(file.delegate(0)->processed(), fb::BackendDelegateDataReference::VT_LOCATION, int8_t{2});
     },
     "The delegate's data location (2) is none that is known (0 to 1)."},
    {"delegate segment past the end",
     [](ModelFile& file) {
       set(file.delegate(0)->processed(), fb::BackendDelegateDataReference::VT_INDEX, UINT32_MAX);
     },
     "The id BackendDelegateDataReference.index (4294967295) is not among the 6 segments."},
    {"inline delegate past the end",
     [](ModelFile& file) {
       file = ModelFile({.inline_data = true});
       set(file.delegate(0)->processed(), fb::BackendDelegateDataReference::VT_INDEX, uint32_t{1});
     },
     "The id BackendDelegateDataReference.index (1) is not among the 1 inline delegates."},
    {"compile spec without a key",
     [](ModelFile& file) {
       drop(file.delegate(0)->compile_specs()->Get(0), fb::CompileSpec::VT_KEY);
     },
     "The name CompileSpec.key is absent or empty."},

    {"chain input past the end", [](ModelFile& file) { set_item(file.chain()->inputs(), 0, 99); },
     "The id (99) at position 0 of Chain.inputs is not among the 16 values."},
    {"chain output negative",
     [](ModelFile& file) { set_item(file.chain()->outputs(), 0, INT32_MIN); },
     "The id (-2147483648) at position 0 of Chain.outputs is not among the 16 values."},
    {"chain without instructions",
     [](ModelFile& file) { drop(file.chain(), fb::Chain::VT_INSTRUCTIONS); },
     "The field Chain.instructions is absent."},
    {"stack trace too short", [](ModelFile& file) { set_length(file.chain()->stacktrace(), 6); },
     "The stack trace has 6 entries for 7 instructions."},
    {"instruction without a type",
     [](ModelFile& file) {
       set(file.instruction(kMove), fb::Instruction::VT_INSTR_ARGS_TYPE, uint8_t{0});
     },
     "The instruction's type (0) is none that is known (1 to 5)."},
    {"instruction of type 6",
     [](ModelFile& file) {
       set(file.instruction(kMove), fb::Instruction::VT_INSTR_ARGS_TYPE, uint8_t{6});
     },
     "The instruction's type (6) is none that is known (1 to 5)."},
    {"instruction without content",
     [](ModelFile& file) { drop(file.instruction(kKernel), fb::Instruction::VT_INSTR_ARGS); },
     "The instruction of type 1 has no content."},
    {"operator index past the end",
     [](ModelFile& file) {
       set(file.instruction(kKernel)->instr_args_as_KernelCall(), fb::KernelCall::VT_OP_INDEX,
           int32_t{1});
     },
     "The id KernelCall.op_index (1) is not among the 1 operators."},
    {"operator index negative",
     [](ModelFile& file) {
       set(file.instruction(kKernel)->instr_args_as_KernelCall(), fb::KernelCall::VT_OP_INDEX,
           int32_t{-1});
     },
     "The id KernelCall.op_index (-1) is not among the 1 operators."},
    {"kernel call without arguments",
     [](ModelFile& file) {
       drop(file.instruction(kKernel)->instr_args_as_KernelCall(), fb::KernelCall::VT_ARGS);
     },
     "The field KernelCall.args is absent."},
    {"kernel argument negative",
     [](ModelFile& file) {
       set_item(file.instruction(kKernel)->instr_args_as_KernelCall()->args(), 2, -5);
     },
     "The id (-5) at position 2 of KernelCall.args is not among the 16 values."},
    {"delegate index past the end",
     [](ModelFile& file) {
       set(file.instruction(kDelegateCall)->instr_args_as_DelegateCall(),
           fb::DelegateCall::VT_DELEGATE_INDEX, int32_t{1});
     },
     "The id DelegateCall.delegate_index (1) is not among the 1 delegates."},
    {"delegate call without arguments",
     [](ModelFile& file) {
       drop(file.instruction(kDelegateCall)->instr_args_as_DelegateCall(),
            fb::DelegateCall::VT_ARGS);
     },
     "The field DelegateCall.args is absent."},
    {"delegate argument past the end",
     [](ModelFile& file) {
       set_item(file.instruction(kDelegateCall)->instr_args_as_DelegateCall()->args(), 1,
                INT32_MAX);
     },
     "The id (2147483647) at position 1 of DelegateCall.args is not among the 16 values."},
    {"move from nowhere",
     [](ModelFile& file) {
       set(file.instruction(kMove)->instr_args_as_MoveCall(), fb::MoveCall::VT_MOVE_FROM,
           int32_t{-1});
     },
     "The id MoveCall.move_from (-1) is not among the 16 values."},
    {"move to nowhere",
     [](ModelFile& file) {
       set(file.instruction(kMove)->instr_args_as_MoveCall(), fb::MoveCall::VT_MOVE_TO,
           int32_t{16});
     },
     "The id MoveCall.move_to (16) is not among the 16 values."},
    {"free of nothing",
     [](ModelFile& file) {
       set(file.instruction(kFree)->instr_args_as_FreeCall(), fb::FreeCall::VT_VALUE_INDEX,
           int32_t{16});
     },
     "The id FreeCall.value_index (16) is not among the 16 values."},
    {"free of an int",
     [](ModelFile& file) {
       set(file.instruction(kFree)->instr_args_as_FreeCall(), fb::FreeCall::VT_VALUE_INDEX,
           int32_t{kInt});
     },
     "The FreeCall frees value 5, which is no Tensor."},
    {"jump on nothing",
     [](ModelFile& file) {
       set(file.instruction(kJump)->instr_args_as_JumpFalseCall(),
           fb::JumpFalseCall::VT_COND_VALUE_INDEX, int32_t{-1});
     },
     "The id JumpFalseCall.cond_value_index (-1) is not among the 16 values."},
    {"jump on a float tensor",
     [](ModelFile& file) {
       set(file.instruction(kJump)->instr_args_as_JumpFalseCall(),
           fb::JumpFalseCall::VT_COND_VALUE_INDEX, int32_t{kInput});
     },
     "The condition of a JumpFalseCall (value 0) is neither a Bool nor a tensor of bools."},
    {"jump past the end",
     [](ModelFile& file) {
       set(file.instruction(kJump)->instr_args_as_JumpFalseCall(),
           fb::JumpFalseCall::VT_DESTINATION_INSTRUCTION, int32_t{8});
     },
     "The destination (8) of a JumpFalseCall is not among the 7 instructions."},
    {"jump before the start",
     [](ModelFile& file) {
       set(file.instruction(kJump)->instr_args_as_JumpFalseCall(),
           fb::JumpFalseCall::VT_DESTINATION_INSTRUCTION, int32_t{-1});
     },
     "The destination (-1) of a JumpFalseCall is not among the 7 instructions."},
    {"jump to itself",
     [](ModelFile& file) {
       set(file.instruction(kJump)->instr_args_as_JumpFalseCall(),
           fb::JumpFalseCall::VT_DESTINATION_INSTRUCTION, int32_t{kJump});
     },
     "The JumpFalseCall at instruction 3 jumps to itself."},
    {"loop over other values",
     [](ModelFile& file) {
       set(file.instruction(kJump)->instr_args_as_JumpFalseCall(),
           fb::JumpFalseCall::VT_DESTINATION_INSTRUCTION, int32_t{0});
     },
     "The loop from instruction 0 to 3 never ends: nothing in it changes its condition (value "
     "6)."},
    {"loop that misses the change",
     [](ModelFile& file) {
       set_item(file.instruction(kLoopBody)->instr_args_as_KernelCall()->args(), 1,
                int32_t{kPlanned});
     },
     "The loop from instruction 5 to 6 never ends: nothing in it changes its condition (value "
     "15)."},
};

}  // namespace

std::span<const Corruption> plan_corruptions() {
  return kCorruptions;
}

}  // namespace ptero::pte::test
