// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "pte/plan_reader.h"

namespace ptero::pte {
namespace {

namespace fb = fbs::program;

class ChainReader {
 public:
  ChainReader(ExecutionPlan& plan, FieldReader& reader) : plan_(plan), reader_(reader) {}

  Status read(const fb::ExecutionPlan& in) {
    PTERO_RETURN_IF_ERROR(reader_.check_present(in.chains(), "ExecutionPlan.chains"));
    PTERO_RETURN_IF_ERROR(reader_.charge(in.chains()->size(), sizeof(Chain)));
    for (const fb::Chain* entry : *in.chains()) {
      Chain chain;
      PTERO_RETURN_IF_ERROR(read_chain(*entry, chain), "while reading chain {}",
                            plan_.chains.size());
      plan_.chains.push_back(std::move(chain));
    }
    return ok_status();
  }

 private:
  Result<std::vector<uint32_t>> read_value_ids(const flatbuffers::Vector<int32_t>* ids,
                                               const char* name) {
    return reader_.read_ids(ids, plan_.values.size(), name, "values");
  }

  Status read_chain(const fb::Chain& in, Chain& chain) {
    PTERO_ASSIGN_OR_RETURN(chain.inputs, read_value_ids(in.inputs(), "Chain.inputs"));
    PTERO_ASSIGN_OR_RETURN(chain.outputs, read_value_ids(in.outputs(), "Chain.outputs"));
    PTERO_RETURN_IF_ERROR(reader_.check_present(in.instructions(), "Chain.instructions"));
    const size_t count = in.instructions()->size();
    PTERO_RETURN_IF_ERROR(reader_.charge(count, sizeof(Instruction)));
    chain.instructions.reserve(count);
    for (const fb::Instruction* entry : *in.instructions()) {
      PTERO_ASSIGN_OR_RETURN(Instruction instruction, read_instruction(*entry, count),
                             "while reading instruction {}", chain.instructions.size());
      chain.instructions.push_back(std::move(instruction));
    }
    PTERO_RETURN_IF_ERROR(check_loops(chain));
    return read_stacktrace(in, chain);
  }

  Result<Instruction> read_instruction(const fb::Instruction& in, size_t instruction_count) {
    const fb::InstructionArguments type = in.instr_args_type();
    PTERO_REJECT_IF(type == fb::InstructionArguments::NONE || type > fb::InstructionArguments::MAX,
                    invalid_program, "The instruction's type ({}) is none that is known (1 to {}).",
                    static_cast<int>(type), static_cast<int>(fb::InstructionArguments::MAX));
    PTERO_REJECT_IF(in.instr_args() == nullptr, invalid_program,
                    "The instruction of type {} has no content.", static_cast<int>(type));
    const size_t values = plan_.values.size();
    switch (type) {
      case fb::InstructionArguments::NONE:
        break;
      case fb::InstructionArguments::KernelCall: {
        const fb::KernelCall& call = *in.instr_args_as_KernelCall();
        KernelCall out;
        PTERO_ASSIGN_OR_RETURN(out.op, reader_.read_id(call.op_index(), plan_.operators.size(),
                                                       "KernelCall.op_index", "operators"));
        PTERO_RETURN_IF_ERROR(reader_.check_present(call.args(), "KernelCall.args"));
        PTERO_ASSIGN_OR_RETURN(out.args, read_value_ids(call.args(), "KernelCall.args"));
        return Instruction(std::move(out));
      }
      case fb::InstructionArguments::DelegateCall: {
        const fb::DelegateCall& call = *in.instr_args_as_DelegateCall();
        DelegateCall out;
        PTERO_ASSIGN_OR_RETURN(out.delegate,
                               reader_.read_id(call.delegate_index(), plan_.delegates.size(),
                                               "DelegateCall.delegate_index", "delegates"));
        PTERO_RETURN_IF_ERROR(reader_.check_present(call.args(), "DelegateCall.args"));
        PTERO_ASSIGN_OR_RETURN(out.args, read_value_ids(call.args(), "DelegateCall.args"));
        return Instruction(std::move(out));
      }
      case fb::InstructionArguments::MoveCall: {
        const fb::MoveCall& call = *in.instr_args_as_MoveCall();
        MoveCall out;
        PTERO_ASSIGN_OR_RETURN(
            out.from, reader_.read_id(call.move_from(), values, "MoveCall.move_from", "values"));
        PTERO_ASSIGN_OR_RETURN(
            out.to, reader_.read_id(call.move_to(), values, "MoveCall.move_to", "values"));
        return Instruction(out);
      }
      case fb::InstructionArguments::JumpFalseCall:
        return read_jump(*in.instr_args_as_JumpFalseCall(), instruction_count);
      case fb::InstructionArguments::FreeCall: {
        FreeCall out;
        PTERO_ASSIGN_OR_RETURN(out.value,
                               reader_.read_id(in.instr_args_as_FreeCall()->value_index(), values,
                                               "FreeCall.value_index", "values"));
        PTERO_REJECT_IF(!holds<Tensor>(plan_, out.value), invalid_program,
                        "The FreeCall frees value {}, which is no Tensor.", out.value);
        return Instruction(out);
      }
    }
    return Instruction();
  }

  Result<Instruction> read_jump(const fb::JumpFalseCall& in, size_t instruction_count) {
    JumpFalseCall out;
    PTERO_ASSIGN_OR_RETURN(out.condition,
                           reader_.read_id(in.cond_value_index(), plan_.values.size(),
                                           "JumpFalseCall.cond_value_index", "values"));
    const auto* tensor = std::get_if<Tensor>(&plan_.values[out.condition]);
    PTERO_REJECT_IF(!holds<bool>(plan_, out.condition) &&
                        (tensor == nullptr || tensor->scalar_type != ScalarType::boolean),
                    invalid_program,
                    "The condition of a JumpFalseCall (value {}) is neither a Bool nor a tensor of "
                    "bools.",
                    out.condition);
    const int32_t destination = in.destination_instruction();
    PTERO_REJECT_IF(destination < 0 || static_cast<size_t>(destination) > instruction_count,
                    invalid_program,
                    "The destination ({}) of a JumpFalseCall is not among the {} instructions.",
                    destination, instruction_count);
    out.destination = static_cast<uint32_t>(destination);
    return Instruction(out);
  }

  // A jump back repeats everything from its destination on until its condition is true, so
  // something in between has to be able to change that condition. See program.h.
  Status check_loops(const Chain& chain) const {
    // Where each condition may be written, in increasing order.
    std::unordered_map<uint32_t, std::vector<size_t>> writes;
    for (const Instruction& instruction : chain.instructions) {
      if (const auto* jump = std::get_if<JumpFalseCall>(&instruction)) {
        writes[jump->condition];
      }
    }
    if (writes.empty()) {
      return ok_status();
    }
    const auto note_write = [&](uint32_t value, size_t at) {
      const auto found = writes.find(value);
      if (found != writes.end()) {
        found->second.push_back(at);
      }
    };
    for (size_t i = 0; i < chain.instructions.size(); ++i) {
      if (const auto* kernel = std::get_if<KernelCall>(&chain.instructions[i])) {
        std::for_each(kernel->args.begin(), kernel->args.end(),
                      [&](uint32_t arg) { note_write(arg, i); });
      } else if (const auto* delegate = std::get_if<DelegateCall>(&chain.instructions[i])) {
        std::for_each(delegate->args.begin(), delegate->args.end(),
                      [&](uint32_t arg) { note_write(arg, i); });
      } else if (const auto* move = std::get_if<MoveCall>(&chain.instructions[i])) {
        note_write(move->to, i);
      }
    }
    for (size_t i = 0; i < chain.instructions.size(); ++i) {
      const auto* jump = std::get_if<JumpFalseCall>(&chain.instructions[i]);
      if (jump == nullptr || jump->destination > i) {
        continue;
      }
      PTERO_REJECT_IF(jump->destination == i, invalid_program,
                      "The JumpFalseCall at instruction {} jumps to itself.", i);
      const std::vector<size_t>& at = writes[jump->condition];
      const auto first = std::lower_bound(at.begin(), at.end(), size_t{jump->destination});
      PTERO_REJECT_IF(first == at.end() || *first >= i, invalid_program,
                      "The loop from instruction {} to {} never ends: nothing in it changes its "
                      "condition (value {}).",
                      jump->destination, i, jump->condition);
    }
    return ok_status();
  }

  Status read_stacktrace(const fb::Chain& in, Chain& chain) {
    if (in.stacktrace() == nullptr || in.stacktrace()->size() == 0) {
      return ok_status();
    }
    PTERO_REJECT_IF(in.stacktrace()->size() != chain.instructions.size(), invalid_program,
                    "The stack trace has {} entries for {} instructions.", in.stacktrace()->size(),
                    chain.instructions.size());
    PTERO_RETURN_IF_ERROR(reader_.charge(in.stacktrace()->size(), sizeof(FrameList)));
    for (const fb::FrameList* list : *in.stacktrace()) {
      FrameList frames;
      if (list->items() != nullptr) {
        PTERO_RETURN_IF_ERROR(reader_.charge(list->items()->size(), sizeof(Frame)));
        for (const fb::Frame* entry : *list->items()) {
          Frame frame;
          frame.line = entry->lineno();
          PTERO_ASSIGN_OR_RETURN(frame.filename, reader_.read_text(entry->filename()));
          PTERO_ASSIGN_OR_RETURN(frame.name, reader_.read_text(entry->name()));
          PTERO_ASSIGN_OR_RETURN(frame.context, reader_.read_text(entry->context()));
          frames.push_back(std::move(frame));
        }
      }
      chain.stacktrace.push_back(std::move(frames));
    }
    return ok_status();
  }

  ExecutionPlan& plan_;
  FieldReader& reader_;
};

}  // namespace

Status read_chains(const fbs::program::ExecutionPlan& in, ExecutionPlan& plan,
                   FieldReader& reader) {
  return ChainReader(plan, reader).read(in);
}

}  // namespace ptero::pte
