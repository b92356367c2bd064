// SPDX-License-Identifier: BSD-3-Clause
#include "cli/tensor_file.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>

#include <fmt/ranges.h>

#include "base/byte_source.h"
#include "base/half.h"

namespace ptero::cli {
namespace {

using graph::HostTensor;
using graph::Shape;
using pte::ScalarType;

struct TypeName {
  ScalarType type;
  std::string_view name;
  std::string_view abbreviation;
  std::string_view npy;  // without the byte order
};
constexpr TypeName kTypes[] = {
    {ScalarType::float32, "float32", "f32", "f4"}, {ScalarType::float64, "float64", "f64", "f8"},
    {ScalarType::float16, "float16", "f16", "f2"}, {ScalarType::int64, "int64", "i64", "i8"},
    {ScalarType::int32, "int32", "i32", "i4"},     {ScalarType::int16, "int16", "i16", "i2"},
    {ScalarType::int8, "int8", "i8", "i1"},        {ScalarType::uint8, "uint8", "u8", "u1"},
    {ScalarType::boolean, "bool", "b", "b1"},
};

std::optional<double> float_at(const HostTensor& tensor, size_t i) {
  switch (tensor.type) {
    case ScalarType::float32:
      return graph::elements<float>(tensor)[i];
    case ScalarType::float64:
      return graph::elements<double>(tensor)[i];
    case ScalarType::float16:
      return half_to_float(graph::elements<uint16_t>(tensor)[i]);
    default:
      return std::nullopt;
  }
}

int64_t integer_at(const HostTensor& tensor, size_t i) {
  switch (tensor.type) {
    case ScalarType::int64:
      return graph::elements<int64_t>(tensor)[i];
    case ScalarType::int32:
      return graph::elements<int32_t>(tensor)[i];
    case ScalarType::int16:
      return graph::elements<int16_t>(tensor)[i];
    case ScalarType::int8:
      return graph::elements<int8_t>(tensor)[i];
    default:
      return graph::elements<uint8_t>(tensor)[i];
  }
}

Result<uint32_t> parse_dim(std::string_view text) {
  uint32_t dim = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
  PTERO_REJECT_IF(error != std::errc() || end != text.data() + text.size(), invalid_argument,
                  "Dimension ({}) is not a number.", text);
  return dim;
}

Result<Shape> parse_shape(std::string_view text, char separator) {
  Shape shape;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    PTERO_REJECT_IF(shape.rank() == graph::kMaxRank, unsupported,
                    "A shape has more than {} dimensions.", graph::kMaxRank);
    PTERO_ASSIGN_OR_RETURN(const uint32_t dim, parse_dim(text.substr(0, end)));
    shape.append(dim);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return shape;
}

Result<std::vector<std::byte>> read_all(const std::string& path) {
  PTERO_ASSIGN_OR_RETURN(ByteSourcePtr source, map_file(path));
  return ByteRange::whole(std::move(source)).copy(uint64_t{4} << 30);
}

// The value behind 'key': in the Python dict of an .npy header, up to what ends it.
std::string_view header_field(std::string_view header, std::string_view key, char open,
                              char close) {
  const size_t at = header.find(key);
  const size_t begin = at == header.npos ? at : header.find(open, at + key.size());
  const size_t end = begin == header.npos ? begin : header.find(close, begin + 1);
  return end == header.npos ? std::string_view() : header.substr(begin + 1, end - begin - 1);
}

}  // namespace

Result<ScalarType> parse_type(std::string_view name) {
  for (const TypeName& type : kTypes) {
    if (name == type.name || name == type.abbreviation) {
      return type.type;
    }
  }
  return make_error(ErrorCode::invalid_argument,
                    "Element type ({}) is not one of f32, f64, f16, i64, i32, i16, i8, u8, bool.",
                    name);
}

Result<HostTensor> read_raw_tensor(const std::string& path, ScalarType type, const Shape& shape) {
  PTERO_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, read_all(path));
  const uint64_t wanted = shape.numel() * *pte::element_size(type);
  PTERO_REJECT_IF(bytes.size() != wanted, invalid_argument,
                  "Size ({} bytes) of file ({}) differs from what {} {} takes ({}).", bytes.size(),
                  path, pte::name_of(type), graph::to_string(shape), wanted);
  return HostTensor{type, shape, std::move(bytes)};
}

Result<HostTensor> read_npy(const std::string& path) {
  PTERO_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, read_all(path));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  PTERO_REJECT_IF(
      text.size() < 12 || text.substr(0, 6) != "\x93NUMPY" || text[6] < 1 || text[6] > 3,
      invalid_argument, "File ({}) is not in NumPy's .npy format.", path);
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(text[i])); };
  const bool short_length = text[6] == 1;
  const size_t length = short_length ? byte(8) | byte(9) << 8
                                     : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  const size_t start = short_length ? 10 : 12;
  PTERO_REJECT_IF(length > text.size() - start, invalid_argument,
                  "The header of file ({}) runs past its end.", path);
  const std::string_view header = text.substr(start, length);
  PTERO_REJECT_IF(header.find("'fortran_order': False") == header.npos, unsupported,
                  "File ({}) is not in C order; save it with numpy.ascontiguousarray().", path);
  const std::string_view code = header_field(header, "'descr':", '\'', '\'');
  std::string dims(header_field(header, "'shape':", '(', ')'));
  std::erase(dims, ' ');
  PTERO_ASSIGN_OR_RETURN(const Shape shape, parse_shape(dims, ','), "while reading {}", path);
  for (const TypeName& type : kTypes) {
    if (code.size() == 3 && code[0] != '>' && code.substr(1) == type.npy) {
      bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(start + length));
      const uint64_t wanted = shape.numel() * *pte::element_size(type.type);
      PTERO_REJECT_IF(bytes.size() != wanted, invalid_argument,
                      "File ({}) holds {} bytes of elements and not {}.", path, bytes.size(),
                      wanted);
      return HostTensor{type.type, shape, std::move(bytes)};
    }
  }
  return make_error(ErrorCode::unsupported, "Element type ({}) of file ({}) is not supported.",
                    code, path);
}

Status write_npy(const std::string& path, const HostTensor& tensor) {
  std::string_view code;
  for (const TypeName& type : kTypes) {
    if (type.type == tensor.type) {
      code = type.npy;
    }
  }
  PTERO_REJECT_IF(code.empty(), unsupported, "Element type ({}) has no .npy code.",
                  pte::name_of(tensor.type));
  const auto dims = tensor.shape.dims();
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   *pte::element_size(tensor.type) == 1 ? '|' : '<', code,
                                   fmt::join(dims, ", "), dims.size() == 1 ? "," : "");
  header.append(63 - (header.size() + 10) % 64, ' ');  // elements start at a multiple of 64
  header += '\n';
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  const char length[2] = {static_cast<char>(header.size() & 0xff),
                          static_cast<char>(header.size() >> 8)};
  file.write("\x93NUMPY\x01\x00", 8);
  file.write(length, sizeof(length));
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  file.write(reinterpret_cast<const char*>(tensor.bytes.data()),
             static_cast<std::streamsize>(tensor.bytes.size()));
  file.close();
  PTERO_REJECT_IF(!file, io, "File ({}) cannot be written: {}.", path, std::strerror(errno));
  return ok_status();
}

Result<HostTensor> read_tensor_argument(const std::string& argument) {
  if (argument.ends_with(".npy")) {
    return read_npy(argument);
  }
  const size_t shape_at = argument.rfind(':');
  const size_t type_at = shape_at == argument.npos || shape_at == 0
                             ? argument.npos
                             : argument.rfind(':', shape_at - 1);
  PTERO_REJECT_IF(type_at == argument.npos, invalid_argument,
                  "Tensor ({}) is neither FILE.npy nor FILE:TYPE:SHAPE, such as x.bin:f32:1x5.",
                  argument);
  PTERO_ASSIGN_OR_RETURN(const ScalarType type,
                         parse_type(argument.substr(type_at + 1, shape_at - type_at - 1)), "in {}",
                         argument);
  PTERO_ASSIGN_OR_RETURN(const Shape shape, parse_shape(argument.substr(shape_at + 1), 'x'),
                         "in {}", argument);
  return read_raw_tensor(argument.substr(0, type_at), type, shape);
}

std::string element_text(const HostTensor& tensor, size_t i) {
  const std::optional<double> number = float_at(tensor, i);
  return number ? fmt::format("{:.6g}", *number) : fmt::format("{}", integer_at(tensor, i));
}

Result<Comparison> compare(const HostTensor& got, const HostTensor& expected,
                           const Tolerance& tolerance) {
  PTERO_REJECT_IF(got.type != expected.type || got.shape != expected.shape, invalid_argument,
                  "The result is {} {} and not {} {}.", pte::name_of(got.type),
                  graph::to_string(got.shape), pte::name_of(expected.type),
                  graph::to_string(expected.shape));
  Comparison result;
  for (size_t i = 0; i < expected.shape.numel(); ++i) {
    const std::optional<double> want = float_at(expected, i);
    bool passes = true;
    if (!want) {
      passes = integer_at(got, i) == integer_at(expected, i);
    } else if (const double value = *float_at(got, i); value != *want) {  // infinities included
      const double error = std::abs(value - *want);
      passes = error <= tolerance.atol || error <= tolerance.rtol * std::abs(*want);
      result.has_nan = result.has_nan || std::isnan(value);
      result.largest_error = passes ? std::max(result.largest_error, error) : result.largest_error;
    }
    if (!passes && result.difference.empty()) {
      result.difference = fmt::format("Element {} is {} and not {}.", i, element_text(got, i),
                                      element_text(expected, i));
    }
  }
  return result;
}

}  // namespace ptero::cli
