// SPDX-License-Identifier: BSD-3-Clause
#include "pte/packing_reader.h"

#include <array>
#include <cmath>
#include <optional>

#include <fmt/ranges.h>

#include "base/checked.h"

namespace ptero::pte {
namespace {

// Where an operator with 4-bit weights keeps its parts among its arguments.
struct PackedOperator {
  std::string_view name;
  size_t input;  // activations; for an embedding the output, which has the weight's width
  size_t weight;
  size_t scales;
  std::optional<size_t> group_size;  // none: one scale per row
  std::optional<size_t> bias;
  bool transposed_scales;  // [groups, rows] of a linear instead of [rows, groups]
  bool padded_to_8;        // rows are padded to whole 32-bit words
  bool rows_are_outputs;   // weight rows match the last dimension of the call's last argument
};

constexpr std::array<PackedOperator, 4> kPackedOperators = {{
    {"et_vk.linear_q4gsw.default", 0, 1, 2, 3, 4, true, true, true},
    {"et_vk.linear_dq8ca_q4gsw.default", 0, 3, 5, 6, 7, true, true, true},
    {"et_vk.linear_qcs4w.default", 0, 1, 2, std::nullopt, std::nullopt, true, false, true},
    {"et_vk.embedding_q4gsw.default", 5, 0, 1, 2, std::nullopt, false, true, false},
}};

class PackingChecker {
 public:
  PackingChecker(const Graph& graph, const OperatorCall& call, const PackedOperator& op)
      : graph_(graph), call_(call), op_(op) {}

  Status check() {
    PTERO_ASSIGN_OR_RETURN(const GraphTensor* input, tensor(op_.input, "input"));
    PTERO_ASSIGN_OR_RETURN(const GraphTensor* weight, tensor(op_.weight, "weight"));
    PTERO_ASSIGN_OR_RETURN(const GraphTensor* scales, tensor(op_.scales, "scales"));
    PTERO_REJECT_IF(input->dims.empty(), invalid_program,
                    "The operator {} has a tensor without dimensions as its input.", call_.name);
    PTERO_REJECT_IF(weight->dtype != GraphDtype::uint8 || weight->dims.size() != 2, invalid_program,
                    "The weight of {} has type {} and rank {} instead of uint8 and 2.", call_.name,
                    name_of(weight->dtype), weight->dims.size());
    const uint64_t width = input->dims.back();
    const uint64_t rows = weight->dims[0];
    const uint64_t row_bytes =
        op_.padded_to_8 ? ceil_div<uint64_t>(width, 8) * 4 : ceil_div<uint64_t>(width, 2);
    PTERO_REJECT_IF(weight->dims[1] != row_bytes, invalid_program,
                    "The weight rows of {} have {} bytes, but {} 4-bit values take {}.", call_.name,
                    weight->dims[1], width, row_bytes);
    if (op_.rows_are_outputs) {
      PTERO_RETURN_IF_ERROR(check_output(rows));
    }
    PTERO_RETURN_IF_ERROR(check_scales(*scales, rows, width));
    return check_bias(rows);
  }

 private:
  const GraphValue& arg(size_t index) const { return graph_.values[call_.args[index]]; }

  Result<const GraphTensor*> tensor(size_t index, const char* role) const {
    const auto* found = std::get_if<GraphTensor>(&arg(index));
    PTERO_REJECT_IF(found == nullptr, invalid_program,
                    "Argument {} of {} (value {}) is no tensor but has to be its {}.", index,
                    call_.name, call_.args[index], role);
    return found;
  }

  Status check_output(uint64_t rows) const {
    PTERO_ASSIGN_OR_RETURN(const GraphTensor* output, tensor(call_.args.size() - 1, "output"));
    PTERO_REJECT_IF(output->dims.empty() || output->dims.back() != rows, invalid_program,
                    "The output of {} has {} columns, but its weight has {} rows.", call_.name,
                    output->dims.empty() ? 0 : output->dims.back(), rows);
    return ok_status();
  }

  // An exporter may store an integer that equals an earlier float as that float.
  Result<uint64_t> group_size() const {
    std::optional<uint64_t> size;
    if (const auto* number = std::get_if<int64_t>(&arg(*op_.group_size))) {
      size = checked_cast<uint64_t>(*number);
    } else if (const auto* real = std::get_if<double>(&arg(*op_.group_size))) {
      size = *real >= 1 && *real <= UINT32_MAX && std::floor(*real) == *real
                 ? std::optional<uint64_t>(static_cast<uint64_t>(*real))
                 : std::nullopt;
    } else {
      return make_error(ErrorCode::invalid_program, "The group size of {} (value {}) is no number.",
                        call_.name, call_.args[*op_.group_size]);
    }
    PTERO_REJECT_IF(!size || *size == 0, invalid_program,
                    "The group size of {} (value {}) is not a whole number above 0.", call_.name,
                    call_.args[*op_.group_size]);
    return *size;
  }

  Status check_scales(const GraphTensor& scales, uint64_t rows, uint64_t width) const {
    if (!op_.group_size) {
      PTERO_REJECT_IF(scales.dims.size() != 1 || scales.dims[0] < rows, invalid_program,
                      "The scales of {} have dims [{}] for {} weight rows.", call_.name,
                      fmt::join(scales.dims, ", "), rows);
      return ok_status();
    }
    PTERO_ASSIGN_OR_RETURN(const uint64_t size, group_size());
    PTERO_REJECT_IF(scales.dims.size() != 2, invalid_program,
                    "The scales of {} have rank {} instead of 2.", call_.name, scales.dims.size());
    const uint64_t groups = scales.dims[op_.transposed_scales ? 0 : 1];
    const uint64_t scale_rows = scales.dims[op_.transposed_scales ? 1 : 0];
    PTERO_REJECT_IF(groups != ceil_div<uint64_t>(width, size), invalid_program,
                    "The scales of {} have {} groups, but {} values in groups of {} take {}.",
                    call_.name, groups, width, size, ceil_div<uint64_t>(width, size));
    PTERO_REJECT_IF(scale_rows < rows, invalid_program,
                    "The scales of {} cover {} rows of a weight with {}.", call_.name, scale_rows,
                    rows);
    return ok_status();
  }

  Status check_bias(uint64_t rows) const {
    if (!op_.bias || std::holds_alternative<Null>(arg(*op_.bias))) {
      return ok_status();
    }
    PTERO_ASSIGN_OR_RETURN(const GraphTensor* bias, tensor(*op_.bias, "bias"));
    PTERO_REJECT_IF(bias->dims.size() != 1 || bias->dims[0] < rows, invalid_program,
                    "The bias of {} has dims [{}] for {} weight rows.", call_.name,
                    fmt::join(bias->dims, ", "), rows);
    return ok_status();
  }

  const Graph& graph_;
  const OperatorCall& call_;
  const PackedOperator& op_;
};

}  // namespace

Status check_packing(const Graph& graph, const OperatorCall& call) {
  for (const PackedOperator& op : kPackedOperators) {
    if (call.name == op.name) {
      return PackingChecker(graph, call, op).check();
    }
  }
  return ok_status();
}

}  // namespace ptero::pte
