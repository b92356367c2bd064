// SPDX-License-Identifier: BSD-3-Clause
#include "pte/graph.h"

#include "base/checked.h"

namespace ptero::pte {

Result<uint64_t> tensor_bytes(GraphDtype dtype, const std::vector<uint32_t>& dims) {
  const std::optional<uint32_t> element = element_size(dtype);
  PTERO_REJECT_IF(!element, invalid_program, "The data type ({}) has no size per element.",
                  static_cast<int>(dtype));
  std::optional<uint64_t> bytes = *element;
  for (const uint32_t dim : dims) {
    bytes = checked_mul<uint64_t>(*bytes, dim);
    PTERO_REJECT_IF(!bytes, invalid_program,
                    "The byte size of a tensor of rank {} does not fit in 64 bits.", dims.size());
  }
  return *bytes;
}

}  // namespace ptero::pte
