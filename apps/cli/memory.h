// SPDX-License-Identifier: BSD-3-Clause
// Device memory as people and programs read it.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "graph/memory_report.h"

namespace ptero::cli {

// A table: a line for each kind with what is planned, allocated, and was at most, and their sum.
std::string memory_table(const graph::MemoryReport& report);
// The same where nothing is allocated.
std::string planned_table(const graph::BytesByKind& planned);

// {"weights": {"planned", "allocated", "peak"}, ..., "total": {...}}, in bytes.
nlohmann::ordered_json to_json(const graph::MemoryReport& report);
// {"weights": bytes, ..., "total": bytes}
nlohmann::ordered_json to_json(const graph::BytesByKind& planned);

}  // namespace ptero::cli
