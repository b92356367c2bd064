// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as a .pte, .ptd or .bpte file: an error or a value, within libFuzzer's limits.
#include "pte/bundled_reader.h"
#include "pte/data_map.h"
#include "pte/flat_tensor_reader.h"
#include "pte/fuzz_walk.h"
#include "pte/program_reader.h"

namespace ptero::pte {
namespace {

void walk_plan(const Program& program, const ExecutionPlan& plan) {
  for (const Value& value : plan.values) {
    if (const auto* tensor = std::get_if<Tensor>(&value)) {
      const Result<uint64_t> bytes = tensor_bytes(tensor->scalar_type, tensor->sizes);
      fuzz_require(bytes.ok());
      const bool external = tensor->extra && tensor->extra->external;
      if (tensor->data_buffer > 0 && !external) {
        const Result<ByteRange> data = constant_bytes(program, *tensor);
        fuzz_require(data.ok() && data->size() == *bytes);
        fuzz_touch(*data);
      }
    }
  }
  for (const BackendDelegate& delegate : plan.delegates) {
    fuzz_touch(delegate_bytes(program, delegate));
  }
  for (const Chain& chain : plan.chains) {
    for (const Instruction& instruction : chain.instructions) {
      if (const auto* call = std::get_if<KernelCall>(&instruction)) {
        fuzz_require(call->op < plan.operators.size());
        for (const uint32_t arg : call->args) {
          fuzz_require(arg < plan.values.size());
        }
      } else if (const auto* jump = std::get_if<JumpFalseCall>(&instruction)) {
        fuzz_require(jump->destination <= chain.instructions.size());
      }
    }
  }
}

void fuzz(const ByteRange& file) {
  const Result<FileKind> kind = file_kind(file);
  fuzz_require(kind.ok());
  if (*kind == FileKind::flat_tensor) {
    const Result<FlatTensor> weights = read_flat_tensor(file);
    if (weights.ok()) {
      DataMap data;
      fuzz_require(data.add(*weights).ok());
      for (const auto& [key, entry] : data.entries()) {
        fuzz_touch(entry.data);
      }
    }
    return;
  }
  ByteRange inner = file;
  if (*kind == FileKind::bundled_program) {
    const Result<BundledProgram> bundle = read_bundled_program(file);
    if (!bundle.ok()) {
      return;
    }
    inner = bundle->program;
  }
  const Result<Program> program = read_program(inner);
  if (!program.ok()) {
    fuzz_require(!program.error().message().empty());
    return;
  }
  DataMap data;
  fuzz_require(data.add(*program).ok());
  for (const ExecutionPlan& plan : program->plans) {
    walk_plan(*program, plan);
  }
}

}  // namespace
}  // namespace ptero::pte

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ptero::pte::fuzz(ptero::pte::fuzz_input(data, size));
  return 0;
}
