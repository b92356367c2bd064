// SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <utility>

#include "pte/plan_reader.h"

namespace ptero::pte {
namespace {

namespace fb = fbs::program;

class ValueReader {
 public:
  ValueReader(const Program& program, ExecutionPlan& plan, FieldReader& reader)
      : program_(program), plan_(plan), reader_(reader) {}

  Status read(const fb::ExecutionPlan& in) {
    PTERO_RETURN_IF_ERROR(reader_.check_present(in.values(), "ExecutionPlan.values"));
    PTERO_RETURN_IF_ERROR(reader_.charge(in.values()->size(), sizeof(Value)));
    plan_.values.reserve(in.values()->size());
    for (const fb::EValue* entry : *in.values()) {
      PTERO_ASSIGN_OR_RETURN(Value value, read_value(*entry, in.values()->size()),
                             "while reading value {}", plan_.values.size());
      plan_.values.push_back(std::move(value));
    }
    // What lists refer to may come after them.
    for (size_t id = 0; id < plan_.values.size(); ++id) {
      PTERO_RETURN_IF_ERROR(check_list(plan_.values[id]), "while reading value {}", id);
    }
    return ok_status();
  }

 private:
  Result<Value> read_value(const fb::EValue& in, size_t value_count) {
    const fb::KernelTypes type = in.val_type();
    PTERO_REJECT_IF(type == fb::KernelTypes::NONE || type > fb::KernelTypes::MAX, invalid_program,
                    "The value's type ({}) is none that is known (1 to {}).",
                    static_cast<int>(type), static_cast<int>(fb::KernelTypes::MAX));
    PTERO_REJECT_IF(in.val() == nullptr && type != fb::KernelTypes::Null, invalid_program,
                    "The value of type {} has no content.", static_cast<int>(type));
    switch (type) {
      case fb::KernelTypes::NONE:
      case fb::KernelTypes::Null:
        return Value(Null());
      case fb::KernelTypes::Int:
        return Value(in.val_as_Int()->int_val());
      case fb::KernelTypes::Bool:
        return Value(in.val_as_Bool()->bool_val());
      case fb::KernelTypes::Double:
        return Value(in.val_as_Double()->double_val());
      case fb::KernelTypes::Tensor: {
        PTERO_ASSIGN_OR_RETURN(Tensor tensor,
                               read_tensor(*in.val_as_Tensor(), program_, plan_, reader_));
        return Value(std::move(tensor));
      }
      case fb::KernelTypes::String: {
        const flatbuffers::String* text = in.val_as_String()->string_val();
        PTERO_RETURN_IF_ERROR(reader_.check_present(text, "String.string_val"));
        PTERO_ASSIGN_OR_RETURN(std::string value, reader_.read_text(text));
        return Value(std::move(value));
      }
      case fb::KernelTypes::IntList: {
        const auto* items = in.val_as_IntList()->items();
        PTERO_RETURN_IF_ERROR(reader_.check_present(items, "IntList.items"));
        IntIdList list;
        PTERO_ASSIGN_OR_RETURN(list.ids,
                               reader_.read_ids(items, value_count, "IntList.items", "values"));
        return Value(std::move(list));
      }
      case fb::KernelTypes::DoubleList: {
        const auto* items = in.val_as_DoubleList()->items();
        PTERO_RETURN_IF_ERROR(reader_.check_present(items, "DoubleList.items"));
        DoubleList list;
        PTERO_ASSIGN_OR_RETURN(list.items, reader_.read_numbers<double>(items));
        return Value(std::move(list));
      }
      case fb::KernelTypes::BoolList: {
        const auto* items = in.val_as_BoolList()->items();
        PTERO_RETURN_IF_ERROR(reader_.check_present(items, "BoolList.items"));
        PTERO_RETURN_IF_ERROR(reader_.charge(items->size(), 1));
        return Value(BoolList{std::vector<bool>(items->begin(), items->end())});
      }
      case fb::KernelTypes::TensorList: {
        const auto* items = in.val_as_TensorList()->items();
        PTERO_RETURN_IF_ERROR(reader_.check_present(items, "TensorList.items"));
        TensorIdList list;
        PTERO_ASSIGN_OR_RETURN(list.ids,
                               reader_.read_ids(items, value_count, "TensorList.items", "values"));
        return Value(std::move(list));
      }
      case fb::KernelTypes::OptionalTensorList:
        return read_optional_list(*in.val_as_OptionalTensorList(), value_count);
    }
    return Value(Null());
  }

  Result<Value> read_optional_list(const fb::OptionalTensorList& in, size_t value_count) {
    PTERO_RETURN_IF_ERROR(reader_.check_present(in.items(), "OptionalTensorList.items"));
    PTERO_RETURN_IF_ERROR(reader_.charge(in.items()->size(), sizeof(std::optional<uint32_t>)));
    OptionalTensorIdList list;
    list.ids.reserve(in.items()->size());
    for (const int32_t item : *in.items()) {
      if (item == -1) {
        list.ids.push_back(std::nullopt);
        continue;
      }
      PTERO_ASSIGN_OR_RETURN(
          const uint32_t id,
          reader_.read_id(item, value_count, "OptionalTensorList.items", "values"));
      list.ids.push_back(id);
    }
    return Value(std::move(list));
  }

  Status check_list(const Value& value) const {
    if (const auto* ints = std::get_if<IntIdList>(&value)) {
      for (const uint32_t id : ints->ids) {
        PTERO_REJECT_IF(!holds<int64_t>(plan_, id), invalid_program,
                        "The IntList names value {}, which is no Int.", id);
      }
    } else if (const auto* tensors = std::get_if<TensorIdList>(&value)) {
      for (const uint32_t id : tensors->ids) {
        PTERO_REJECT_IF(!holds<Tensor>(plan_, id), invalid_program,
                        "The TensorList names value {}, which is no Tensor.", id);
      }
    } else if (const auto* optionals = std::get_if<OptionalTensorIdList>(&value)) {
      for (const std::optional<uint32_t>& id : optionals->ids) {
        PTERO_REJECT_IF(
            id && !holds<Tensor>(plan_, *id) && !holds<Null>(plan_, *id), invalid_program,
            "The OptionalTensorList names value {}, which is neither Tensor nor Null.", *id);
      }
    }
    return ok_status();
  }

  const Program& program_;
  ExecutionPlan& plan_;
  FieldReader& reader_;
};

}  // namespace

Status read_values(const fbs::program::ExecutionPlan& in, const Program& program,
                   ExecutionPlan& plan, FieldReader& reader) {
  return ValueReader(program, plan, reader).read(in);
}

}  // namespace ptero::pte
