// SPDX-License-Identifier: BSD-3-Clause
// A .pte file opened for running: program, named data and loaded methods.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"
#include "graph/method.h"
#include "pte/data_map.h"
#include "pte/program.h"

namespace ptero::cli {

struct ProgramFile {
  pte::Program program;
  pte::DataMap data;
};

// Maps and checks the file, and merges the .ptd files given with it.
Result<std::unique_ptr<ProgramFile>> open_program(const std::string& path,
                                                  const std::vector<std::string>& data_files);

// Loads a method and waits. `file` outlives what comes back.
Result<std::shared_ptr<const graph::MethodModel>> load_method(gpu::Device device,
                                                              const ProgramFile& file,
                                                              const std::string& method,
                                                              graph::PlanOptions options);

// Runs and waits.
Result<std::vector<graph::HostTensor>> run_method(graph::MethodSession& session,
                                                  std::vector<graph::HostTensor> inputs);

}  // namespace ptero::cli
