// SPDX-License-Identifier: BSD-3-Clause
#include "pte/plan_reader.h"

#include <utility>

namespace ptero::pte {
namespace {

namespace fb = fbs::program;

class PlanReader {
 public:
  PlanReader(const Program& program, FieldReader& reader) : program_(program), reader_(reader) {}

  Result<ExecutionPlan> read(const fb::ExecutionPlan& in) {
    PTERO_ASSIGN_OR_RETURN(plan_.name, reader_.read_name(in.name(), "ExecutionPlan.name"));
    PTERO_RETURN_IF_ERROR(read_body(in), "while reading the method {:?}", plan_.name);
    return std::move(plan_);
  }

 private:
  Status read_body(const fb::ExecutionPlan& in) {
    if (const fb::ContainerMetadata* container = in.container_meta_type()) {
      plan_.container.emplace();
      PTERO_ASSIGN_OR_RETURN(plan_.container->inputs,
                             reader_.read_text(container->encoded_inp_str()));
      PTERO_ASSIGN_OR_RETURN(plan_.container->outputs,
                             reader_.read_text(container->encoded_out_str()));
    }
    PTERO_RETURN_IF_ERROR(read_arenas(in));
    PTERO_RETURN_IF_ERROR(read_values(in, program_, plan_, reader_));
    PTERO_RETURN_IF_ERROR(reader_.check_present(in.inputs(), "ExecutionPlan.inputs"));
    PTERO_ASSIGN_OR_RETURN(plan_.inputs, read_value_ids(in.inputs(), "ExecutionPlan.inputs"));
    PTERO_RETURN_IF_ERROR(reader_.check_present(in.outputs(), "ExecutionPlan.outputs"));
    PTERO_ASSIGN_OR_RETURN(plan_.outputs, read_value_ids(in.outputs(), "ExecutionPlan.outputs"));
    PTERO_RETURN_IF_ERROR(read_operators(in));
    PTERO_RETURN_IF_ERROR(read_delegates(in));
    return read_chains(in, plan_, reader_);
  }

  Result<std::vector<uint32_t>> read_value_ids(const flatbuffers::Vector<int32_t>* ids,
                                               const char* name) {
    return reader_.read_ids(ids, plan_.values.size(), name, "values");
  }

  Status read_arenas(const fb::ExecutionPlan& in) {
    PTERO_RETURN_IF_ERROR(
        reader_.check_present(in.non_const_buffer_sizes(), "ExecutionPlan.non_const_buffer_sizes"));
    const auto& sizes = *in.non_const_buffer_sizes();
    PTERO_RETURN_IF_ERROR(reader_.charge(sizes.size(), sizeof(uint64_t)));
    for (flatbuffers::uoffset_t i = 0; i < sizes.size(); ++i) {
      const int64_t size = item_at(sizes, i);
      PTERO_REJECT_IF(size < 0 || static_cast<uint64_t>(size) > kMaxTensorBytes, invalid_program,
                      "The size ({}) of planned memory {} is not between 0 and {} bytes.", size,
                      plan_.non_const_buffer_sizes.size(), kMaxTensorBytes);
      plan_.non_const_buffer_sizes.push_back(static_cast<uint64_t>(size));
    }
    if (const auto* devices = in.non_const_buffer_device()) {
      PTERO_RETURN_IF_ERROR(reader_.charge(devices->size(), sizeof(BufferDevice)));
      for (const fb::NonConstBufferDevice* device : *devices) {
        BufferDevice out;
        PTERO_ASSIGN_OR_RETURN(
            out.buffer, reader_.read_id(device->buffer_idx(), plan_.non_const_buffer_sizes.size(),
                                        "NonConstBufferDevice.buffer_idx", "planned memories"));
        PTERO_ASSIGN_OR_RETURN(out.device_type, read_device_type(device->device_type()));
        out.device_index = device->device_index();
        plan_.non_const_buffer_devices.push_back(out);
      }
    }
    return ok_status();
  }

  Status read_operators(const fb::ExecutionPlan& in) {
    if (in.operators() == nullptr) {
      return ok_status();
    }
    PTERO_RETURN_IF_ERROR(reader_.charge(in.operators()->size(), sizeof(Operator)));
    for (const fb::Operator* entry : *in.operators()) {
      Operator op;
      PTERO_ASSIGN_OR_RETURN(op.name, reader_.read_name(entry->name(), "Operator.name"),
                             "while reading operator {}", plan_.operators.size());
      PTERO_ASSIGN_OR_RETURN(op.overload, reader_.read_text(entry->overload()));
      plan_.operators.push_back(std::move(op));
    }
    return ok_status();
  }

  Status read_delegates(const fb::ExecutionPlan& in) {
    if (in.delegates() == nullptr) {
      return ok_status();
    }
    PTERO_RETURN_IF_ERROR(reader_.charge(in.delegates()->size(), sizeof(BackendDelegate)));
    for (const fb::BackendDelegate* entry : *in.delegates()) {
      PTERO_ASSIGN_OR_RETURN(BackendDelegate delegate, read_delegate(*entry),
                             "while reading delegate {}", plan_.delegates.size());
      plan_.delegates.push_back(std::move(delegate));
    }
    return ok_status();
  }

  Result<BackendDelegate> read_delegate(const fb::BackendDelegate& in) {
    BackendDelegate out;
    PTERO_ASSIGN_OR_RETURN(out.id, reader_.read_name(in.id(), "BackendDelegate.id"));
    PTERO_RETURN_IF_ERROR(reader_.check_present(in.processed(), "BackendDelegate.processed"));
    const fb::DataLocation location = in.processed()->location();
    PTERO_REJECT_IF(location != fb::DataLocation::INLINE && location != fb::DataLocation::SEGMENT,
                    invalid_program,
                    "The delegate's data location ({}) is none that is known (0 to 1).",
                    static_cast<int>(location));
    out.location = static_cast<DataLocation>(location);
    const uint32_t index = in.processed()->index();
    if (out.location == DataLocation::segment) {
      PTERO_ASSIGN_OR_RETURN(out.index,
                             reader_.read_id(index, program_.segments.size(),
                                             "BackendDelegateDataReference.index", "segments"));
    } else {
      PTERO_ASSIGN_OR_RETURN(
          out.index, reader_.read_id(index, program_.inline_delegate_data.size(),
                                     "BackendDelegateDataReference.index", "inline delegates"));
    }
    if (in.compile_specs() == nullptr) {
      return out;
    }
    PTERO_RETURN_IF_ERROR(reader_.charge(in.compile_specs()->size(), sizeof(CompileSpec)));
    for (const fb::CompileSpec* entry : *in.compile_specs()) {
      CompileSpec spec;
      PTERO_ASSIGN_OR_RETURN(spec.key, reader_.read_name(entry->key(), "CompileSpec.key"));
      PTERO_ASSIGN_OR_RETURN(spec.value, reader_.read_numbers<std::byte>(entry->value()));
      out.compile_specs.push_back(std::move(spec));
    }
    return out;
  }

  const Program& program_;
  FieldReader& reader_;
  ExecutionPlan plan_;
};

}  // namespace

Result<ExecutionPlan> read_plan(const fbs::program::ExecutionPlan& in, const Program& program,
                                FieldReader& reader) {
  return PlanReader(program, reader).read(in);
}

}  // namespace ptero::pte
