// SPDX-License-Identifier: BSD-3-Clause
// The report for people.
#pragma once

#include <cstdint>
#include <string>

#include "inspect/report.h"

namespace ptero::inspect {

// Aligned text with a line feed at the end.
std::string to_text(const Report& report);

// "84.53 MiB"; bytes below 1 KiB stay whole.
std::string format_bytes(uint64_t bytes);

// "float32 [1, S<=127]".
std::string format_tensor(const TensorReport& tensor);

}  // namespace ptero::inspect
