// SPDX-License-Identifier: BSD-3-Clause
// Graph -> the blob of a VulkanBackend delegate: VH00 header, VK00 flatbuffer, constant bytes.
#pragma once

#include <string>

#include "base/byte_source.h"
#include "base/result.h"
#include "pte/graph.h"

namespace ptero::pte {

// The blob that says `graph`; the same Graph gives the same bytes. `constants` are the bytes that
// GraphConstant::offset counts in, for constants without a key. Absent ids are written as -1. The
// result keeps `constants` alive and reads it when it is read.
// Code invalid_program, with the reader's sentence, when `graph` breaks a rule of graph.h.
Result<ByteSourcePtr> assemble_delegate(const Graph& graph, const ByteRange& constants = {},
                                        std::string name = "delegate");

// Gives every constant without a key a place (16-byte aligned, in order) and returns the bytes to
// pass on as `constants`: weights inside the blob, for delegates that need no named data.
Result<ByteSourcePtr> pack_inline_constants(Graph& graph);

}  // namespace ptero::pte
