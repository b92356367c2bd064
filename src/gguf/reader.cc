// SPDX-License-Identifier: BSD-3-Clause
#include "gguf/reader.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "gguf/input.h"
#include "gguf/limits.h"

namespace ptero::gguf {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kHeaderSize = 24;  // magic, version, two counts
constexpr uint32_t kDefaultAlignment = 32;
constexpr std::string_view kAlignmentKey = "general.alignment";

// What an entry takes at least: a count that promises more than the file holds is a lie.
constexpr uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

class Reader {
 public:
  explicit Reader(const ByteRange& file) : in_(file) {
    if (file.source() != nullptr) {
      out_.name = file.source()->name();
    }
  }

  Result<File> read() {
    PTERO_RETURN_IF_ERROR(read_header());
    for (uint64_t i = 0; i < key_count_; ++i) {
      PTERO_RETURN_IF_ERROR(read_pair(i));
    }
    PTERO_RETURN_IF_ERROR(read_alignment());
    for (uint64_t i = 0; i < tensor_count_; ++i) {
      PTERO_RETURN_IF_ERROR(read_tensor(i));
    }
    PTERO_RETURN_IF_ERROR(place_tensors());
    return std::move(out_);
  }

 private:
  Status read_header() {
    const uint64_t size = in_.left();
    PTERO_REJECT_IF(size < kHeaderSize, invalid_program,
                    "The file ({} bytes) is shorter than the head of a GGUF file ({} bytes).", size,
                    kHeaderSize);
    std::array<char, 4> magic;
    PTERO_RETURN_IF_ERROR(in_.read(std::as_writable_bytes(std::span(magic)), {"magic", ""}));
    const std::string_view text(magic.data(), magic.size());
    PTERO_REJECT_IF(text != kMagic, invalid_program,
                    "The file starts with {:?} where a GGUF file has {:?}.", text, kMagic);
    PTERO_ASSIGN_OR_RETURN(out_.version, in_.number<uint32_t>({"version", ""}));
    PTERO_REJECT_IF(out_.version != 0 && (out_.version & 0xffffu) == 0, unsupported,
                    "The GGUF file is big-endian (version {} in that order), which is not read.",
                    out_.version >> 24);
    PTERO_REJECT_IF(out_.version != 2 && out_.version != 3, unsupported,
                    "The GGUF version ({}) is none that is read (2 and 3).", out_.version);
    PTERO_ASSIGN_OR_RETURN(tensor_count_, in_.number<uint64_t>({"number of tensors", ""}));
    PTERO_ASSIGN_OR_RETURN(key_count_, in_.number<uint64_t>({"number of keys", ""}));
    PTERO_REJECT_IF(tensor_count_ > kMaxTensors, invalid_program,
                    "The number of tensors ({}) exceeds the limit ({}).", tensor_count_,
                    kMaxTensors);
    PTERO_REJECT_IF(key_count_ > kMaxKeys, invalid_program,
                    "The number of keys ({}) exceeds the limit ({}).", key_count_, kMaxKeys);
    const uint64_t least = key_count_ * kMinKeyBytes + tensor_count_ * kMinTensorBytes;
    PTERO_REJECT_IF(least > in_.left(), invalid_program,
                    "The numbers of keys ({}) and tensors ({}) need {} bytes, and the file has {}.",
                    key_count_, tensor_count_, least, in_.left());
    return ok_status();
  }

  Status read_pair(uint64_t index) {
    PTERO_ASSIGN_OR_RETURN(std::string key, in_.string({"name of key", "", index}, kMaxKeySize));
    PTERO_REJECT_IF(key.empty(), invalid_program, "The name of key {} is empty.", index);
    PTERO_REJECT_IF(out_.metadata.contains(key), invalid_program,
                    "The key {:?} stands in the file twice.", key);
    PTERO_ASSIGN_OR_RETURN(const ValueType type, read_type({"type", key}));
    PTERO_ASSIGN_OR_RETURN(Value value, read_value(type, key));
    out_.metadata.emplace(std::move(key), std::move(value));
    return ok_status();
  }

  Result<ValueType> read_type(const Field& field) {
    PTERO_ASSIGN_OR_RETURN(const auto number, in_.number<uint32_t>(field));
    const auto type = static_cast<ValueType>(number);
    PTERO_REJECT_IF(name_of(type).empty(), invalid_program,
                    "The {} ({}) is none that is known (0 to 12).", field.text(), number);
    return type;
  }

  template <typename T, typename Wide>
  Result<Value> widened(ValueType type, const Field& field) {
    PTERO_ASSIGN_OR_RETURN(const T number, in_.number<T>(field));
    return Value{type, static_cast<Wide>(number)};
  }

  Result<Value> read_value(ValueType type, const std::string& key) {
    const Field field{"value", key};
    switch (type) {
      case ValueType::uint8:
        return widened<uint8_t, uint64_t>(type, field);
      case ValueType::uint16:
        return widened<uint16_t, uint64_t>(type, field);
      case ValueType::uint32:
        return widened<uint32_t, uint64_t>(type, field);
      case ValueType::uint64:
        return widened<uint64_t, uint64_t>(type, field);
      case ValueType::int8:
        return widened<int8_t, int64_t>(type, field);
      case ValueType::int16:
        return widened<int16_t, int64_t>(type, field);
      case ValueType::int32:
        return widened<int32_t, int64_t>(type, field);
      case ValueType::int64:
        return widened<int64_t, int64_t>(type, field);
      case ValueType::float32:
        return widened<float, double>(type, field);
      case ValueType::float64:
        return widened<double, double>(type, field);
      case ValueType::boolean: {
        PTERO_ASSIGN_OR_RETURN(const auto byte, in_.number<uint8_t>(field));
        PTERO_REJECT_IF(byte > 1, invalid_program, "The {} ({}) is no boolean (0 or 1).",
                        field.text(), byte);
        return Value{type, byte != 0};
      }
      case ValueType::string: {
        PTERO_ASSIGN_OR_RETURN(std::string text, in_.string(field, kMaxStringSize));
        return Value{type, std::move(text)};
      }
      case ValueType::array: {
        PTERO_ASSIGN_OR_RETURN(Array array, read_array(key));
        return Value{type, std::move(array)};
      }
    }
    return make_error(ErrorCode::internal, "The type of {} is not handled.", key);
  }

  Result<Array> read_array(const std::string& key) {
    Array array;
    PTERO_ASSIGN_OR_RETURN(array.type, read_type({"element type", key}));
    PTERO_REJECT_IF(array.type == ValueType::array, unsupported,
                    "The value of {} is an array of arrays, which is not read.", key);
    PTERO_ASSIGN_OR_RETURN(array.count, in_.number<uint64_t>({"number of elements", key}));
    // A string has a length of 8 bytes.
    const uint64_t least = value_size(array.type).value_or(8);
    PTERO_REJECT_IF(array.count > in_.left() / least, invalid_program,
                    "The number of elements ({}) of {} exceeds what the file's last {} bytes hold.",
                    array.count, key, in_.left());
    PTERO_REJECT_IF(array.count > kMaxArrayItems, invalid_program,
                    "The number of elements ({}) of {} exceeds the limit ({}).", array.count, key,
                    kMaxArrayItems);
    const uint64_t start = in_.offset();
    if (array.type == ValueType::string) {
      std::vector<char> buffer;
      for (uint64_t i = 0; i < array.count; ++i) {
        PTERO_RETURN_IF_ERROR(in_.string_view({"string", key, i}, kMaxItemSize, buffer));
      }
    } else if (array.type == ValueType::boolean) {
      for (uint64_t i = 0; i < array.count; ++i) {
        const Field field{"element", key, i};
        PTERO_ASSIGN_OR_RETURN(const auto byte, in_.number<uint8_t>(field));
        PTERO_REJECT_IF(byte > 1, invalid_program, "The {} ({}) is no boolean (0 or 1).",
                        field.text(), byte);
      }
    } else {
      PTERO_RETURN_IF_ERROR(in_.skip(array.count * least, {"value", key}));
    }
    PTERO_ASSIGN_OR_RETURN(array.bytes, in_.file().subrange(start, in_.offset() - start));
    return array;
  }

  Status read_alignment() {
    const Value* value = out_.find(kAlignmentKey);
    out_.alignment = kDefaultAlignment;
    if (value == nullptr) {
      return ok_status();
    }
    PTERO_REJECT_IF(value->type != ValueType::uint32, invalid_program,
                    "The value of {} has the type {} instead of uint32.", kAlignmentKey,
                    name_of(value->type));
    const uint64_t alignment = std::get<uint64_t>(value->content);
    PTERO_REJECT_IF(!std::has_single_bit(alignment), invalid_program,
                    "The value of {} ({}) is no power of two.", kAlignmentKey, alignment);
    PTERO_REJECT_IF(alignment < kMinAlignment || alignment > kMaxAlignment, invalid_program,
                    "The value of {} ({}) does not lie between {} and {}.", kAlignmentKey,
                    alignment, kMinAlignment, kMaxAlignment);
    out_.alignment = static_cast<uint32_t>(alignment);
    return ok_status();
  }

  Status read_tensor(uint64_t index) {
    TensorInfo tensor;
    PTERO_ASSIGN_OR_RETURN(tensor.name,
                           in_.string({"name of tensor", "", index}, kMaxTensorNameSize));
    PTERO_REJECT_IF(tensor.name.empty(), invalid_program, "The name of tensor {} is empty.", index);
    const std::string& name = tensor.name;
    PTERO_REJECT_IF(!out_.tensor_index.emplace(name, out_.tensors.size()).second, invalid_program,
                    "The tensor {:?} stands in the file twice.", name);
    PTERO_ASSIGN_OR_RETURN(const auto rank, in_.number<uint32_t>({"number of dimensions", name}));
    PTERO_REJECT_IF(rank < 1 || rank > kMaxRank, invalid_program,
                    "The number of dimensions ({}) of {} does not lie between 1 and {}.", rank,
                    name, kMaxRank);
    tensor.elements = 1;
    for (uint32_t i = 0; i < rank; ++i) {
      PTERO_ASSIGN_OR_RETURN(const auto dim, in_.number<uint64_t>({"dimension", name, i}));
      PTERO_REJECT_IF(dim == 0, invalid_program, "Dimension {} of {} is 0.", i, name);
      const std::optional<uint64_t> product = checked_mul(tensor.elements, dim);
      PTERO_REJECT_IF(
          !product, invalid_program,
          "The number of elements of {} does not fit into 64 bits (dimension {} is {}).", name, i,
          dim);
      tensor.elements = *product;
      tensor.dims.push_back(dim);
    }
    PTERO_ASSIGN_OR_RETURN(const auto type, in_.number<uint32_t>({"type", name}));
    tensor.type = static_cast<TensorType>(type);
    const BlockLayout* layout = layout_of(tensor.type);
    PTERO_REJECT_IF(layout == nullptr, invalid_program,
                    "The type ({}) of {} is none that is known.", type, name);
    PTERO_REJECT_IF(tensor.dims[0] % layout->elements != 0, invalid_program,
                    "The rows of {} ({} elements) are no whole blocks of {} ({} elements).", name,
                    tensor.dims[0], layout->name, layout->elements);
    PTERO_ASSIGN_OR_RETURN(const auto offset, in_.number<uint64_t>({"offset", name}));
    PTERO_REJECT_IF(offset % out_.alignment != 0, invalid_program,
                    "The offset ({}) of {} is no multiple of the alignment ({}).", offset, name,
                    out_.alignment);
    offsets_.push_back(offset);
    out_.tensors.push_back(std::move(tensor));
    return ok_status();
  }

  Status place_tensors() {
    if (out_.tensors.empty()) {
      return ok_status();
    }
    const uint64_t size = in_.file().size();
    const std::optional<uint64_t> start = checked_round_up<uint64_t>(in_.offset(), out_.alignment);
    PTERO_REJECT_IF(!start || *start > size, invalid_program,
                    "The data of the tensors would start at byte {}, behind the file's {} bytes.",
                    start.value_or(UINT64_MAX), size);
    for (size_t i = 0; i < out_.tensors.size(); ++i) {
      TensorInfo& tensor = out_.tensors[i];
      const BlockLayout& layout = *layout_of(tensor.type);
      const std::optional<uint64_t> bytes =
          checked_mul<uint64_t>(tensor.elements / layout.elements, layout.bytes);
      PTERO_REJECT_IF(!bytes, invalid_program, "The size of {} does not fit into 64 bits.",
                      tensor.name);
      const uint64_t room = size - *start;
      PTERO_REJECT_IF(offsets_[i] > room || *bytes > room - offsets_[i], invalid_program,
                      "The data of {} ({} bytes at offset {}) exceeds the {} bytes of tensor data.",
                      tensor.name, *bytes, offsets_[i], room);
      PTERO_ASSIGN_OR_RETURN(tensor.data, in_.file().subrange(*start + offsets_[i], *bytes));
    }
    return check_overlaps();
  }

  Status check_overlaps() const {
    std::vector<const TensorInfo*> order;
    for (const TensorInfo& tensor : out_.tensors) {
      order.push_back(&tensor);
    }
    std::ranges::sort(order, {}, [](const TensorInfo* tensor) { return tensor->data.offset(); });
    for (size_t i = 1; i < order.size(); ++i) {
      const ByteRange& before = order[i - 1]->data;
      PTERO_REJECT_IF(before.offset() + before.size() > order[i]->data.offset(), invalid_program,
                      "The data of {} and {} overlap (bytes {} to {} and from {} on).",
                      order[i - 1]->name, order[i]->name, before.offset(),
                      before.offset() + before.size(), order[i]->data.offset());
    }
    return ok_status();
  }

  Input in_;
  File out_;
  uint64_t key_count_ = 0;
  uint64_t tensor_count_ = 0;
  std::vector<uint64_t> offsets_;  // by tensor, from the start of the data
};

}  // namespace

Result<File> read_gguf(const ByteRange& file) {
  return Reader(file).read();
}

Result<bool> is_gguf(const ByteRange& file) {
  std::array<char, 4> magic = {};
  if (file.size() < magic.size()) {
    return false;
  }
  PTERO_RETURN_IF_ERROR(file.read(0, std::as_writable_bytes(std::span(magic))));
  return std::string_view(magic.data(), magic.size()) == kMagic;
}

}  // namespace ptero::gguf
