// SPDX-License-Identifier: BSD-3-Clause
// The parts of report.h that look into one graph. Internal.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "inspect/report.h"

namespace ptero::inspect {

GraphReport report_graph(const pte::Graph& graph, const ShapeTable& shapes);

// Largest count first, then by name.
std::vector<OpCount> sorted_counts(const std::map<std::string, uint64_t>& counts);

// Saturates: reports are for people, files may lie.
uint64_t add_saturated(uint64_t a, uint64_t b);

}  // namespace ptero::inspect
