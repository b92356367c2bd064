// SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <utility>

#include <fmt/ranges.h>

#include "base/checked.h"
#include "pte/plan_reader.h"

namespace ptero::pte {
namespace {

namespace fb = fbs::program;

class TensorReader {
 public:
  TensorReader(const Program& program, const ExecutionPlan& plan, FieldReader& reader)
      : program_(program), plan_(plan), reader_(reader) {}

  Result<Tensor> read(const fb::Tensor& in) {
    Tensor out;
    out.scalar_type = static_cast<ScalarType>(in.scalar_type());
    PTERO_REJECT_IF(name_of(out.scalar_type).empty(), invalid_program,
                    "The tensor's scalar type ({}) is none that is known.",
                    static_cast<int>(in.scalar_type()));
    PTERO_REJECT_IF(!element_size(out.scalar_type), unsupported,
                    "The tensor's scalar type ({}) packs several elements into a byte.",
                    name_of(out.scalar_type));
    PTERO_ASSIGN_OR_RETURN(FieldReader::Shape shape,
                           reader_.read_shape(in.sizes(), in.dim_order()));
    out.sizes = std::move(shape.sizes);
    out.dim_order = std::move(shape.dim_order);
    const Result<uint64_t> bytes = tensor_bytes(out.scalar_type, out.sizes);
    PTERO_REJECT_IF(!bytes.ok() || *bytes > kMaxTensorBytes, invalid_program,
                    "The tensor of type {} and sizes [{}] exceeds the limit ({} bytes).",
                    name_of(out.scalar_type), fmt::join(out.sizes, ", "), kMaxTensorBytes);
    PTERO_REJECT_IF(in.storage_offset() != 0, unsupported, "The storage offset ({}) is not 0.",
                    in.storage_offset());
    const fb::TensorShapeDynamism dynamism = in.shape_dynamism();
    PTERO_REJECT_IF(
        dynamism < fb::TensorShapeDynamism::MIN || dynamism > fb::TensorShapeDynamism::MAX,
        invalid_program, "The shape dynamism ({}) is none that is known (0 to 2).",
        static_cast<int>(dynamism));
    out.dynamism = static_cast<ShapeDynamism>(dynamism);
    out.requires_grad = in.requires_grad();
    out.layout = in.layout();
    out.data_buffer = in.data_buffer_idx();
    if (in.extra_tensor_info() != nullptr) {
      PTERO_ASSIGN_OR_RETURN(out.extra, read_extra(*in.extra_tensor_info()));
    }
    if (in.allocation_info() != nullptr) {
      PTERO_ASSIGN_OR_RETURN(out.allocation, read_allocation(*in.allocation_info(), *bytes));
    }
    PTERO_RETURN_IF_ERROR(check_data(out, *bytes));
    return out;
  }

 private:
  Result<ExtraTensorInfo> read_extra(const fb::ExtraTensorInfo& in) {
    ExtraTensorInfo out;
    out.mutable_data_segment = in.mutable_data_segments_idx();
    if (in.fully_qualified_name() != nullptr) {
      PTERO_ASSIGN_OR_RETURN(out.fully_qualified_name,
                             reader_.read_text(in.fully_qualified_name()));
    }
    const fb::TensorDataLocation location = in.location();
    PTERO_REJECT_IF(
        location != fb::TensorDataLocation::SEGMENT && location != fb::TensorDataLocation::EXTERNAL,
        invalid_program, "The tensor's data location ({}) is none that is known (0 to 1).",
        static_cast<int>(location));
    out.external = location == fb::TensorDataLocation::EXTERNAL;
    PTERO_REJECT_IF(
        out.external && (!out.fully_qualified_name || out.fully_qualified_name->empty()),
        invalid_program, "The tensor's data is external but it has no fully_qualified_name.");
    PTERO_ASSIGN_OR_RETURN(out.device_type, read_device_type(in.device_type()));
    out.device_index = in.device_index();
    return out;
  }

  Result<Allocation> read_allocation(const fb::AllocationDetails& in, uint64_t bytes) const {
    Allocation out;
    out.memory_id = in.memory_id();
    out.offset = (uint64_t{in.memory_offset_high()} << 32) | in.memory_offset_low();
    PTERO_REJECT_IF(out.memory_id == 0, invalid_program,
                    "The memory id is 0, which no tensor is planned in.");
    PTERO_REJECT_IF(out.memory_id >= plan_.non_const_buffer_sizes.size(), invalid_program,
                    "The memory id ({}) is not among the {} planned memories.", out.memory_id,
                    plan_.non_const_buffer_sizes.size());
    const uint64_t size = plan_.non_const_buffer_sizes[out.memory_id];
    const std::optional<uint64_t> end = checked_add(out.offset, bytes);
    PTERO_REJECT_IF(!end || *end > size, invalid_program,
                    "The tensor ({} bytes at offset {}) leaves planned memory {} ({} bytes).",
                    bytes, out.offset, out.memory_id, size);
    return out;
  }

  // That the initial bytes of a constant or mutable tensor are there.
  Status check_data(const Tensor& tensor, uint64_t bytes) const {
    if (tensor.data_buffer == 0 || (tensor.extra && tensor.extra->external)) {
      return ok_status();
    }
    const uint32_t index = tensor.data_buffer;
    const SubsegmentOffsets* list = nullptr;
    if (tensor.allocation) {
      const uint64_t segment = tensor.extra ? tensor.extra->mutable_data_segment : 0;
      PTERO_REJECT_IF(segment >= program_.mutable_data_segments.size(), invalid_program,
                      "The tensor's mutable_data_segments_idx ({}) is not among the {} mutable "
                      "data segments.",
                      segment, program_.mutable_data_segments.size());
      list = &program_.mutable_data_segments[static_cast<size_t>(segment)];
    } else if (program_.constant_segment && !program_.constant_segment->offsets.empty()) {
      list = &*program_.constant_segment;
    } else {
      PTERO_REJECT_IF(index >= program_.constant_buffer.size(), invalid_program,
                      "The tensor's data_buffer_idx ({}) is not among the {} constant buffers.",
                      index, program_.constant_buffer.size());
      PTERO_REJECT_IF(program_.constant_buffer[index].size() < bytes, invalid_program,
                      "The tensor ({} bytes) is larger than constant buffer {} ({} bytes).", bytes,
                      index, program_.constant_buffer[index].size());
      return ok_status();
    }
    PTERO_REJECT_IF(index >= list->offsets.size(), invalid_program,
                    "The tensor's data_buffer_idx ({}) is not among the {} offsets of segment {}.",
                    index, list->offsets.size(), list->segment);
    const uint64_t size = program_.segments[list->segment].size();
    PTERO_REJECT_IF(bytes > size - list->offsets[index], invalid_program,
                    "The tensor ({} bytes at offset {}) leaves segment {} ({} bytes).", bytes,
                    list->offsets[index], list->segment, size);
    return ok_status();
  }

  const Program& program_;
  const ExecutionPlan& plan_;
  FieldReader& reader_;
};

}  // namespace

Result<Tensor> read_tensor(const fbs::program::Tensor& in, const Program& program,
                           const ExecutionPlan& plan, FieldReader& reader) {
  return TensorReader(program, plan, reader).read(in);
}

Result<DeviceType> read_device_type(fbs::program::DeviceType type) {
  PTERO_REJECT_IF(type != fbs::program::DeviceType::CPU && type != fbs::program::DeviceType::CUDA,
                  unsupported, "The device type ({}) is none that is known (0 to 1).",
                  static_cast<int>(type));
  return static_cast<DeviceType>(type);
}

}  // namespace ptero::pte
