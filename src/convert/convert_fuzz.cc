// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as a GGUF file to convert: an error, or a program whose bytes can be made and read.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "convert/convert.h"
#include "gguf/reader.h"
#include "pte/program_writer.h"

namespace ptero::convert {
namespace {

void require(bool promise) {
  if (!promise) {
    __builtin_trap();
  }
}

void fuzz(const ByteRange& bytes, WeightFormat weights) {
  const Result<gguf::File> file = gguf::read_gguf(bytes);
  if (!file.ok()) {
    return;
  }
  ConvertOptions options;
  options.weights = weights;
  options.threads = 1;
  const Result<ConvertedProgram> converted = convert_gguf(*file, options);
  if (!converted.ok()) {
    require(!converted.error().message().empty());
    return;
  }
  // The writer may refuse what exceeds its limits; what it takes can be read.
  const Result<ByteSourcePtr> program = pte::assemble_program(converted->program);
  if (program.ok()) {
    constexpr uint64_t kPiece = 4096;
    std::vector<std::byte> out(kPiece);
    for (uint64_t at = 0; at + kPiece <= std::min<uint64_t>((*program)->size(), uint64_t{1} << 20);
         at += kPiece) {
      require((*program)->read(at, out).ok());
    }
  }
}

}  // namespace
}  // namespace ptero::convert

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  using ptero::convert::WeightFormat;
  constexpr WeightFormat kFormats[] = {WeightFormat::q4, WeightFormat::f16, WeightFormat::f32};
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const auto range = ptero::ByteRange::whole(
      ptero::own_bytes(std::vector<std::byte>(bytes, bytes + size), "fuzz input"));
  ptero::convert::fuzz(range, kFormats[size % 3]);
  return 0;
}
