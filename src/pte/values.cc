// SPDX-License-Identifier: BSD-3-Clause
#include "pte/values.h"

namespace ptero::pte {
namespace {

struct TypeInfo {
  std::string_view name;
  uint32_t size;  // 0: less than a byte, or no type
};

TypeInfo info_of(ScalarType type) {
  switch (type) {
    case ScalarType::uint8:
      return {"uint8", 1};
    case ScalarType::int8:
      return {"int8", 1};
    case ScalarType::int16:
      return {"int16", 2};
    case ScalarType::int32:
      return {"int32", 4};
    case ScalarType::int64:
      return {"int64", 8};
    case ScalarType::float16:
      return {"float16", 2};
    case ScalarType::float32:
      return {"float32", 4};
    case ScalarType::float64:
      return {"float64", 8};
    case ScalarType::boolean:
      return {"bool", 1};
    case ScalarType::qint8:
      return {"qint8", 1};
    case ScalarType::quint8:
      return {"quint8", 1};
    case ScalarType::qint32:
      return {"qint32", 4};
    case ScalarType::bfloat16:
      return {"bfloat16", 2};
    case ScalarType::quint4x2:
      return {"quint4x2", 0};
    case ScalarType::quint2x4:
      return {"quint2x4", 0};
    case ScalarType::bits16:
      return {"bits16", 2};
    case ScalarType::float8_e5m2:
      return {"float8_e5m2", 1};
    case ScalarType::float8_e4m3fn:
      return {"float8_e4m3fn", 1};
    case ScalarType::float8_e5m2fnuz:
      return {"float8_e5m2fnuz", 1};
    case ScalarType::float8_e4m3fnuz:
      return {"float8_e4m3fnuz", 1};
    case ScalarType::uint16:
      return {"uint16", 2};
    case ScalarType::uint32:
      return {"uint32", 4};
    case ScalarType::uint64:
      return {"uint64", 8};
  }
  return {"", 0};
}

TypeInfo info_of(GraphDtype type) {
  switch (type) {
    case GraphDtype::boolean:
      return {"bool", 1};
    case GraphDtype::uint8:
      return {"uint8", 1};
    case GraphDtype::int8:
      return {"int8", 1};
    case GraphDtype::int32:
      return {"int32", 4};
    case GraphDtype::float16:
      return {"float16", 2};
    case GraphDtype::float32:
      return {"float32", 4};
    case GraphDtype::float64:
      return {"float64", 8};
    case GraphDtype::int64:
      return {"int64", 8};
    case GraphDtype::unset:
      return {"unset", 0};
  }
  return {"", 0};
}

std::optional<uint32_t> size_of(TypeInfo info) {
  return info.size == 0 ? std::nullopt : std::optional<uint32_t>(info.size);
}

}  // namespace

std::string_view name_of(ScalarType type) {
  return info_of(type).name;
}
std::string_view name_of(GraphDtype type) {
  return info_of(type).name;
}
std::optional<uint32_t> element_size(ScalarType type) {
  return size_of(info_of(type));
}
std::optional<uint32_t> element_size(GraphDtype type) {
  return size_of(info_of(type));
}

}  // namespace ptero::pte
