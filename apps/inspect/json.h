// SPDX-License-Identifier: BSD-3-Clause
// The report for programs. Keys are stable: docs/inspect.md lists them.
#pragma once

#include <string>

#include "inspect/report.h"

namespace ptero::inspect {

// One JSON object, indented by two spaces, with a line feed at the end. Bytes that are no UTF-8
// become U+FFFD.
std::string to_json(const Report& report);

}  // namespace ptero::inspect
