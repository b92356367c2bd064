// SPDX-License-Identifier: BSD-3-Clause
// pte_rewrite IN OUT: reads a .pte or .ptd to plain structs, the graphs of its delegates too, and
// writes a new file from nothing but these. For tests that compare the two with ExecuTorch's tools.
#include <cstdio>
#include <string>
#include <utility>

#include "base/byte_source.h"
#include "base/file_output.h"
#include "pte/data_map.h"
#include "pte/delegate_reader.h"
#include "pte/delegate_writer.h"
#include "pte/flat_tensor_reader.h"
#include "pte/flat_tensor_writer.h"
#include "pte/graph_reader.h"
#include "pte/program_reader.h"
#include "pte/program_writer.h"

namespace ptero::pte {
namespace {

Status rewrite_delegates(Program& program) {
  DataMap data;
  PTERO_RETURN_IF_ERROR(data.add(program));
  for (const ExecutionPlan& plan : program.plans) {
    for (const BackendDelegate& delegate : plan.delegates) {
      if (delegate.id != kVulkanBackendId) {
        continue;
      }
      PTERO_ASSIGN_OR_RETURN(const Delegate parts,
                             read_delegate(delegate_bytes(program, delegate)));
      PTERO_ASSIGN_OR_RETURN(const Graph graph, read_graph(parts, data));
      PTERO_ASSIGN_OR_RETURN(ByteSourcePtr blob, assemble_delegate(graph, parts.constants));
      auto& list = delegate.location == DataLocation::segment ? program.segments
                                                              : program.inline_delegate_data;
      list[delegate.index] = ByteRange::whole(std::move(blob));
    }
  }
  return ok_status();
}

Status rewrite(const std::string& in, const std::string& out) {
  PTERO_ASSIGN_OR_RETURN(const ByteSourcePtr source, map_file(in));
  const ByteRange file = ByteRange::whole(source);
  PTERO_ASSIGN_OR_RETURN(const FileKind kind, file_kind(file));
  if (kind == FileKind::flat_tensor) {
    PTERO_ASSIGN_OR_RETURN(const FlatTensor tensors, read_flat_tensor(file));
    PTERO_ASSIGN_OR_RETURN(const ByteSourcePtr written, assemble_flat_tensor(tensors));
    return write_file(out, *written);
  }
  PTERO_ASSIGN_OR_RETURN(Program program, read_program(file));
  PTERO_RETURN_IF_ERROR(rewrite_delegates(program));
  PTERO_ASSIGN_OR_RETURN(const ByteSourcePtr written, assemble_program(program));
  return write_file(out, *written);
}

}  // namespace
}  // namespace ptero::pte

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("Usage: pte_rewrite IN OUT\n", stderr);
    return 2;
  }
  const ptero::Status status = ptero::pte::rewrite(argv[1], argv[2]);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.error().to_string().c_str());
    return ptero::error_code_info(status.error().code()).exit_status;
  }
  return 0;
}
