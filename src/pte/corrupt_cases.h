// SPDX-License-Identifier: BSD-3-Clause
// One lie about a model file and the sentence that has to answer it.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "pte/corrupt_base.h"

namespace ptero::pte::test {

struct Corruption {
  const char* name;  // what is wrong, in a few words; unique
  void (*lie)(ModelFile&);
  const char* sentence;  // the error's whole message
  ErrorCode code = ErrorCode::invalid_program;
};

// One table a file.
std::span<const Corruption> container_corruptions();
std::span<const Corruption> value_corruptions();
std::span<const Corruption> plan_corruptions();
std::span<const Corruption> graph_corruptions();
std::span<const Corruption> packing_corruptions();

// Reads `file` through `read`, checks that it fails with exactly this message and code within 5
// seconds of processor time and 512 MiB of its own memory, and notes the message for
// tools/check_error_corpus.py.
void expect_rejected(const char* name, const ByteRange& file, Status (*read)(const ByteRange&),
                     std::string_view sentence, ErrorCode code);

}  // namespace ptero::pte::test
