// SPDX-License-Identifier: BSD-3-Clause
// One execution plan of a program. Private to src/pte: read_program() is the way in.
#pragma once

#include <cstdint>
#include <variant>

#include "base/result.h"
#include "pte/flatbuffer_input.h"
#include "pte/program.h"
#include "schema/program_generated.h"

namespace ptero::pte {

// `program` holds everything but the plans: the plan's constants and delegates are looked up in it.
Result<ExecutionPlan> read_plan(const fbs::program::ExecutionPlan& in, const Program& program,
                                FieldReader& reader);

// Its parts, in files of their own. Each adds to `plan` what it names and looks up the rest in it:
// read_values() needs the arenas, read_chains() everything else.
Status read_values(const fbs::program::ExecutionPlan& in, const Program& program,
                   ExecutionPlan& plan, FieldReader& reader);
Status read_chains(const fbs::program::ExecutionPlan& in, ExecutionPlan& plan, FieldReader& reader);
Result<Tensor> read_tensor(const fbs::program::Tensor& in, const Program& program,
                           const ExecutionPlan& plan, FieldReader& reader);
Result<DeviceType> read_device_type(fbs::program::DeviceType type);

// Whether the plan's value is a Wanted. The id must be one of the plan's.
template <typename Wanted>
bool holds(const ExecutionPlan& plan, uint32_t id) {
  return std::holds_alternative<Wanted>(plan.values[id]);
}

}  // namespace ptero::pte
