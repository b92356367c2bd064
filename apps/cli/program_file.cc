// SPDX-License-Identifier: BSD-3-Clause
#include "cli/program_file.h"

#include <chrono>

#include "base/byte_source.h"
#include "gguf/reader.h"
#include "gpu/native/wait.h"
#include "ops/all_operators.h"
#include "ops/host_operators.h"
#include "passes/passes.h"
#include "pte/flat_tensor_reader.h"
#include "pte/program_reader.h"

namespace ptero::cli {
namespace {

// Uploading a large model takes its time, a hang does not end: this is neither short nor endless.
constexpr std::chrono::minutes kLoadTimeout{10};

}  // namespace

Result<std::unique_ptr<ProgramFile>> open_program(const std::string& path,
                                                  const std::vector<std::string>& data_files) {
  auto file = std::make_unique<ProgramFile>();
  PTERO_ASSIGN_OR_RETURN(ByteSourcePtr source, map_file(path));
  PTERO_ASSIGN_OR_RETURN(const bool is_gguf, gguf::is_gguf(ByteRange::whole(source)));
  PTERO_REJECT_IF(is_gguf, unsupported,
                  "{} is a GGUF file, which chat, generate and bench take; for other commands "
                  "`ptero convert` makes a .pte file of it.",
                  path);
  PTERO_ASSIGN_OR_RETURN(file->program, pte::read_program(ByteRange::whole(std::move(source))),
                         "while reading {}", path);
  PTERO_RETURN_IF_ERROR(file->data.add(file->program), "while reading {}", path);
  for (const std::string& data_path : data_files) {
    PTERO_ASSIGN_OR_RETURN(ByteSourcePtr data_source, map_file(data_path));
    PTERO_ASSIGN_OR_RETURN(const pte::FlatTensor tensors,
                           pte::read_flat_tensor(ByteRange::whole(std::move(data_source))),
                           "while reading {}", data_path);
    PTERO_RETURN_IF_ERROR(file->data.add(tensors), "while reading {}", data_path);
  }
  return file;
}

Result<std::shared_ptr<const graph::MethodModel>> load_method(gpu::Device device,
                                                              const ProgramFile& file,
                                                              const std::string& method,
                                                              graph::PlanOptions options) {
  return gpu::wait_for(graph::MethodModel::load(std::move(device), file.program, file.data, method,
                                                ops::all_operators(), ops::host_operators(),
                                                passes::standard_passes(), std::move(options)),
                       kLoadTimeout);
}

Result<std::vector<graph::HostTensor>> run_method(graph::MethodSession& session,
                                                  std::vector<graph::HostTensor> inputs) {
  return gpu::wait_for(session.run(std::move(inputs)));
}

}  // namespace ptero::cli
