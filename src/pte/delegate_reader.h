// SPDX-License-Identifier: BSD-3-Clause
// The blob of a VulkanBackend delegate -> its parts.
#pragma once

#include "base/byte_source.h"
#include "base/result.h"
#include "pte/graph.h"

namespace ptero::pte {

// Reads the VH00 header and checks that both parts lie inside the blob. Code invalid_program with
// one sentence when they do not; unsupported when the blob has no VH00 header (another backend's).
Result<Delegate> read_delegate(const ByteRange& blob);

}  // namespace ptero::pte
