// SPDX-License-Identifier: BSD-3-Clause
// gguf_floats FILE OUT: all weights of a GGUF file, in its order, as float32 one after the other.
#include <cstdio>
#include <vector>

#include "base/byte_source.h"
#include "base/file_output.h"
#include "gguf/dequantize.h"
#include "gguf/reader.h"

namespace ptero {
namespace {

Status run(const char* in, const char* out) {
  PTERO_ASSIGN_OR_RETURN(ByteSourcePtr source, map_file(in));
  PTERO_ASSIGN_OR_RETURN(const gguf::File file, gguf::read_gguf(ByteRange::whole(source)));
  std::vector<float> all;
  for (const gguf::TensorInfo& tensor : file.tensors) {
    const size_t start = all.size();
    all.resize(start + tensor.elements);
    PTERO_RETURN_IF_ERROR(
        gguf::dequantize(tensor.type, tensor.data.view().value(), std::span(all).subspan(start)));
  }
  const auto bytes = std::as_bytes(std::span(all));
  return write_file(out, *borrow_bytes(bytes));
}

}  // namespace
}  // namespace ptero

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: gguf_floats FILE OUT\n", stderr);
    return 2;
  }
  const ptero::Status status = ptero::run(argv[1], argv[2]);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.error().to_string().c_str());
    return 1;
  }
  return 0;
}
