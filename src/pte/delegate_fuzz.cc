// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as the blob of a VulkanBackend delegate without named data: header, then graph.
#include "pte/delegate_reader.h"
#include "pte/fuzz_walk.h"
#include "pte/graph_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptero::pte;
  const ptero::Result<Delegate> delegate = read_delegate(fuzz_input(data, size));
  if (!delegate.ok()) {
    fuzz_require(!delegate.error().message().empty());
    return 0;
  }
  fuzz_touch(delegate->graph);
  fuzz_touch(delegate->constants);
  const ptero::Result<Graph> graph = read_graph(*delegate, DataMap());
  fuzz_require(graph.ok() || !graph.error().message().empty());
  return 0;
}
