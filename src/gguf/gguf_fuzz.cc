// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as a GGUF file: an error or a file whose promises hold.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/byte_source.h"
#include "gguf/dequantize.h"
#include "gguf/reader.h"

namespace ptero::gguf {
namespace {

void require(bool promise) {
  if (!promise) {
    __builtin_trap();
  }
}

void walk(const File& file) {
  require(file.version == 2 || file.version == 3);
  for (const auto& [key, value] : file.metadata) {
    require(!key.empty());
    const auto* array = std::get_if<Array>(&value.content);
    if (array == nullptr) {
      continue;
    }
    if (array->type == ValueType::string) {
      uint64_t count = 0;
      require(for_each_string(*array, [&](std::string_view) {
                ++count;
                return ok_status();
              }).ok());
      require(count == array->count);
    } else {
      require(array->bytes.size() == array->count * *value_size(array->type));
      (void)integers_of(*array);
    }
  }
  for (const TensorInfo& tensor : file.tensors) {
    const BlockLayout* layout = layout_of(tensor.type);
    require(layout != nullptr && file.find_tensor(tensor.name) == &tensor);
    require(tensor.data.size() == tensor.elements / layout->elements * layout->bytes);
    if (can_dequantize(tensor.type)) {
      std::vector<std::byte> block(layout->bytes);
      std::vector<float> out(layout->elements);
      require(tensor.data.read(tensor.data.size() - block.size(), block).ok());
      require(dequantize(tensor.type, block, out).ok());
    }
  }
}

}  // namespace
}  // namespace ptero::gguf

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const auto range = ptero::ByteRange::whole(
      ptero::own_bytes(std::vector<std::byte>(bytes, bytes + size), "fuzz input"));
  const ptero::Result<ptero::gguf::File> file = ptero::gguf::read_gguf(range);
  if (file.ok()) {
    ptero::gguf::walk(*file);
  } else {
    ptero::gguf::require(!file.error().message().empty());
  }
  return 0;
}
