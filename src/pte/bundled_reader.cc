// SPDX-License-Identifier: BSD-3-Clause
#include "pte/bundled_reader.h"

#include <utility>

#include <fmt/ranges.h>

#include "pte/flatbuffer_input.h"
#include "pte/program.h"
#include "schema/bundled_program_generated.h"

namespace ptero::pte {
namespace {

namespace bundled = fbs::bundled_program;

class BundledReader {
 public:
  explicit BundledReader(const FlatbufferBytes& bytes) : bytes_(bytes), reader_("bundle") {}

  Result<BundledProgram> read(const bundled::BundledProgram& in) {
    BundledProgram out;
    out.version = in.version();
    PTERO_RETURN_IF_ERROR(reader_.check_present(in.program(), "BundledProgram.program"));
    out.program = bytes_.range_of(in.program());
    if (in.method_test_suites() == nullptr) {
      return out;
    }
    PTERO_RETURN_IF_ERROR(reader_.charge(in.method_test_suites()->size(), sizeof(BundledMethod)));
    for (const bundled::BundledMethodTestSuite* suite : *in.method_test_suites()) {
      PTERO_ASSIGN_OR_RETURN(BundledMethod method, read_method(*suite),
                             "while reading method test suite {}", out.methods.size());
      out.methods.push_back(std::move(method));
    }
    return out;
  }

 private:
  Result<BundledMethod> read_method(const bundled::BundledMethodTestSuite& in) {
    BundledMethod out;
    PTERO_ASSIGN_OR_RETURN(
        out.name, reader_.read_name(in.method_name(), "BundledMethodTestSuite.method_name"));
    if (in.test_cases() == nullptr) {
      return out;
    }
    PTERO_RETURN_IF_ERROR(reader_.charge(in.test_cases()->size(), sizeof(BundledTestCase)));
    for (const bundled::BundledMethodTestCase* test : *in.test_cases()) {
      BundledTestCase out_case;
      PTERO_ASSIGN_OR_RETURN(out_case.inputs, read_values(test->inputs()),
                             "while reading the inputs of case {}", out.cases.size());
      PTERO_ASSIGN_OR_RETURN(out_case.expected_outputs, read_values(test->expected_outputs()),
                             "while reading the outputs of case {}", out.cases.size());
      out.cases.push_back(std::move(out_case));
    }
    return out;
  }

  Result<std::vector<BundledValue>> read_values(
      const flatbuffers::Vector<flatbuffers::Offset<bundled::Value>>* in) {
    std::vector<BundledValue> out;
    if (in == nullptr) {
      return out;
    }
    PTERO_RETURN_IF_ERROR(reader_.charge(in->size(), sizeof(BundledValue)));
    for (const bundled::Value* value : *in) {
      PTERO_ASSIGN_OR_RETURN(BundledValue read, read_value(*value), "while reading value {}",
                             out.size());
      out.push_back(std::move(read));
    }
    return out;
  }

  Result<BundledValue> read_value(const bundled::Value& in) {
    const bundled::ValueUnion type = in.val_type();
    PTERO_REJECT_IF(type == bundled::ValueUnion::NONE || type > bundled::ValueUnion::MAX,
                    invalid_program,
                    "The bundled value's type ({}) is none that is known (1 to {}).",
                    static_cast<int>(type), static_cast<int>(bundled::ValueUnion::MAX));
    PTERO_REJECT_IF(in.val() == nullptr, invalid_program,
                    "The bundled value of type {} has no content.", static_cast<int>(type));
    switch (type) {
      case bundled::ValueUnion::NONE:
        break;
      case bundled::ValueUnion::Tensor: {
        PTERO_ASSIGN_OR_RETURN(BundledTensor tensor, read_tensor(*in.val_as_Tensor()));
        return BundledValue(std::move(tensor));
      }
      case bundled::ValueUnion::Int:
        return BundledValue(in.val_as_Int()->int_val());
      case bundled::ValueUnion::Bool:
        return BundledValue(in.val_as_Bool()->bool_val());
      case bundled::ValueUnion::Double:
        return BundledValue(in.val_as_Double()->double_val());
    }
    return BundledValue(int64_t{0});
  }

  Result<BundledTensor> read_tensor(const bundled::Tensor& in) {
    BundledTensor out;
    out.scalar_type = static_cast<ScalarType>(in.scalar_type());
    PTERO_REJECT_IF(!element_size(out.scalar_type), invalid_program,
                    "The scalar type ({}) of the bundled tensor has no size per element.",
                    static_cast<int>(in.scalar_type()));
    PTERO_ASSIGN_OR_RETURN(FieldReader::Shape shape,
                           reader_.read_shape(in.sizes(), in.dim_order()));
    out.sizes = std::move(shape.sizes);
    out.dim_order = std::move(shape.dim_order);
    out.data = bytes_.range_of(in.data());
    const Result<uint64_t> bytes = tensor_bytes(out.scalar_type, out.sizes);
    PTERO_REJECT_IF(!bytes.ok() || *bytes != out.data.size(), invalid_program,
                    "The bundled tensor of type {} and sizes [{}] has {} bytes of data.",
                    name_of(out.scalar_type), fmt::join(out.sizes, ", "), out.data.size());
    return out;
  }

  const FlatbufferBytes& bytes_;
  FieldReader reader_;
};

}  // namespace

Result<BundledProgram> read_bundled_program(const ByteRange& file) {
  PTERO_ASSIGN_OR_RETURN(const FlatbufferBytes bytes, FlatbufferBytes::load(file, "bundle"));
  PTERO_REJECT_IF(bytes.identifier() != bundled::BundledProgramIdentifier(), invalid_program,
                  "The file identifier is {:?} where a bundled program has {:?}.",
                  bytes.identifier(), bundled::BundledProgramIdentifier());
  PTERO_ASSIGN_OR_RETURN(const bundled::BundledProgram* in,
                         verified_root<bundled::BundledProgram>(bytes, "bundle"));
  return BundledReader(bytes).read(*in);
}

}  // namespace ptero::pte
