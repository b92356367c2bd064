// SPDX-License-Identifier: BSD-3-Clause
#include "inspect/load.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "pte/bundled_reader.h"
#include "pte/delegate_reader.h"
#include "pte/flat_tensor_reader.h"
#include "pte/graph_reader.h"
#include "pte/program_reader.h"

namespace ptero::inspect {
namespace {

using pte::FileKind;

// What people confuse with a .pte, by the first bytes.
std::string_view other_format(std::string_view head) {
  if (head.starts_with("GGUF")) {
    return "a GGUF model";
  }
  if (head.starts_with("PK\x03\x04")) {
    return "a zip archive (a PyTorch .pt, .pth or .pt2 file)";
  }
  if (head.size() > 8 && head[8] == '{') {
    return "a safetensors file";
  }
  if (head.size() >= 8 && head.substr(4, 4) == "VH00") {
    return "a bare Vulkan delegate, without the program around it";
  }
  if (head.starts_with("\x08")) {
    return "an ONNX model";
  }
  if (head.starts_with("version https://git-lfs")) {
    return "a Git LFS pointer, whose content is not downloaded";
  }
  return {};
}

Status refuse(const ByteRange& file) {
  const std::string& name = file.source()->name();
  PTERO_REJECT_IF(file.empty(), invalid_program, "The file {} is empty.", name);
  std::array<char, 32> head{};
  const size_t size = static_cast<size_t>(std::min<uint64_t>(file.size(), head.size()));
  PTERO_RETURN_IF_ERROR(file.read(0, std::as_writable_bytes(std::span(head).first(size))));
  const std::string_view format = other_format({head.data(), size});
  PTERO_REJECT_IF(!format.empty(), invalid_program,
                  "The file {} is {}; .pte, .bpte and .ptd files of ExecuTorch can be inspected.",
                  name, format);
  return make_error(ErrorCode::invalid_program,
                    "The file {} ({} bytes) is not an ExecuTorch file: it does not start like a "
                    ".pte (ET12), .bpte (BP08) or .ptd (FT01).",
                    name, file.size());
}

Result<LoadedProgram> load_program(const ByteRange& file,
                                   const std::vector<ByteSourcePtr>& data_files) {
  LoadedProgram loaded;
  PTERO_ASSIGN_OR_RETURN(loaded.program, pte::read_program(file));
  PTERO_RETURN_IF_ERROR(loaded.data.add(loaded.program));
  for (const ByteSourcePtr& data_file : data_files) {
    PTERO_ASSIGN_OR_RETURN(const pte::FlatTensor tensors,
                           pte::read_flat_tensor(ByteRange::whole(data_file)), "while reading {}",
                           data_file->name());
    PTERO_RETURN_IF_ERROR(loaded.data.add(tensors), "while adding {}", data_file->name());
  }
  for (const pte::ExecutionPlan& plan : loaded.program.plans) {
    std::vector<LoadedDelegate>& delegates = loaded.delegates.emplace_back();
    for (size_t i = 0; i < plan.delegates.size(); ++i) {
      const pte::BackendDelegate& delegate = plan.delegates[i];
      const ByteRange blob = pte::delegate_bytes(loaded.program, delegate);
      LoadedDelegate& added = delegates.emplace_back();
      added.bytes = blob.size();
      if (delegate.id != pte::kVulkanBackendId) {
        continue;
      }
      PTERO_ASSIGN_OR_RETURN(const pte::Delegate parts, pte::read_delegate(blob),
                             "while reading delegate {} of method {}", i, plan.name);
      PTERO_ASSIGN_OR_RETURN(added.graph, pte::read_graph(parts, loaded.data),
                             "while reading delegate {} of method {}", i, plan.name);
      added.inline_constant_bytes = parts.constants.size();
    }
  }
  return loaded;
}

}  // namespace

Result<LoadedFile> load_bytes(ByteSourcePtr source, const std::vector<ByteSourcePtr>& data_files) {
  LoadedFile file;
  file.path = source->name();
  file.bytes = source->size();
  const ByteRange bytes = ByteRange::whole(std::move(source));
  PTERO_ASSIGN_OR_RETURN(const FileKind kind, pte::file_kind(bytes));
  switch (kind) {
    case FileKind::program: {
      PTERO_ASSIGN_OR_RETURN(file.program, load_program(bytes, data_files), "while reading {}",
                             file.path);
      return file;
    }
    case FileKind::bundled_program: {
      PTERO_ASSIGN_OR_RETURN(file.bundle, pte::read_bundled_program(bytes), "while reading {}",
                             file.path);
      PTERO_ASSIGN_OR_RETURN(file.program, load_program(file.bundle->program, data_files),
                             "while reading the program in {}", file.path);
      return file;
    }
    case FileKind::flat_tensor: {
      PTERO_ASSIGN_OR_RETURN(file.tensors, pte::read_flat_tensor(bytes), "while reading {}",
                             file.path);
      return file;
    }
    case FileKind::unknown:
      break;
  }
  return refuse(bytes).error();
}

Result<LoadedFile> load_file(const std::string& path, const std::vector<std::string>& data_files) {
  PTERO_ASSIGN_OR_RETURN(ByteSourcePtr source, map_file(path));
  std::vector<ByteSourcePtr> data;
  for (const std::string& data_file : data_files) {
    PTERO_ASSIGN_OR_RETURN(data.emplace_back(), map_file(data_file));
  }
  return load_bytes(std::move(source), data);
}

}  // namespace ptero::inspect
