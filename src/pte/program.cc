// SPDX-License-Identifier: BSD-3-Clause
#include "pte/program.h"

#include <algorithm>
#include <cassert>

#include "base/checked.h"

namespace ptero::pte {

const ExecutionPlan* find_plan(const Program& program, std::string_view name) {
  const auto found = std::find_if(program.plans.begin(), program.plans.end(),
                                  [&](const ExecutionPlan& plan) { return plan.name == name; });
  return found == program.plans.end() ? nullptr : &*found;
}

ByteRange delegate_bytes(const Program& program, const BackendDelegate& delegate) {
  const std::vector<ByteRange>& list =
      delegate.location == DataLocation::inlined ? program.inline_delegate_data : program.segments;
  assert(delegate.index < list.size());
  return delegate.index < list.size() ? list[delegate.index] : ByteRange();
}

Result<uint64_t> tensor_bytes(ScalarType type, const std::vector<int32_t>& sizes) {
  const std::optional<uint32_t> element = element_size(type);
  PTERO_REJECT_IF(!element, invalid_program, "The scalar type ({}) has no size per element.",
                  static_cast<int>(type));
  std::optional<uint64_t> bytes = *element;
  for (const int32_t size : sizes) {
    PTERO_REJECT_IF(size < 0, invalid_program, "The size ({}) of a dimension is negative.", size);
    bytes = checked_mul<uint64_t>(*bytes, static_cast<uint64_t>(size));
    PTERO_REJECT_IF(!bytes, invalid_program,
                    "The byte size of a tensor of rank {} does not fit in 64 bits.", sizes.size());
  }
  return *bytes;
}

Result<ByteRange> constant_bytes(const Program& program, const Tensor& tensor) {
  PTERO_ASSIGN_OR_RETURN(const uint64_t bytes, tensor_bytes(tensor.scalar_type, tensor.sizes));
  const uint32_t index = tensor.data_buffer;
  const SubsegmentOffsets* offsets = nullptr;
  if (tensor.allocation) {
    const uint64_t list = tensor.extra ? tensor.extra->mutable_data_segment : 0;
    PTERO_REJECT_IF(list >= program.mutable_data_segments.size(), invalid_program,
                    "The mutable data segment ({}) is not among the program's {}.", list,
                    program.mutable_data_segments.size());
    offsets = &program.mutable_data_segments[static_cast<size_t>(list)];
  } else if (program.constant_segment && !program.constant_segment->offsets.empty()) {
    offsets = &*program.constant_segment;
  } else {
    PTERO_REJECT_IF(index >= program.constant_buffer.size(), invalid_program,
                    "The data buffer ({}) is not among the program's {} constant buffers.", index,
                    program.constant_buffer.size());
    return program.constant_buffer[index].subrange(0, bytes);
  }
  PTERO_REJECT_IF(index >= offsets->offsets.size(), invalid_program,
                  "The data buffer ({}) is not among the {} offsets of its segment.", index,
                  offsets->offsets.size());
  PTERO_REJECT_IF(offsets->segment >= program.segments.size(), invalid_program,
                  "The segment ({}) of a constant is not among the program's {}.", offsets->segment,
                  program.segments.size());
  return program.segments[offsets->segment].subrange(offsets->offsets[index], bytes);
}

}  // namespace ptero::pte
