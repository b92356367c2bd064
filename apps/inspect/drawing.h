// SPDX-License-Identifier: BSD-3-Clause
// A program as a Graphviz graph, and Graphviz's `dot` to draw it.
#pragma once

#include <string>

#include "base/result.h"
#include "inspect/load.h"

namespace ptero::inspect {

// DOT text: the methods that compute, one beside the other, with repeated layers drawn once.
// Code unsupported when a drawing would have more boxes than a person can look at.
Result<std::string> to_dot(const LoadedProgram& loaded, const std::string& title);

// Draws DOT text into `path`, whose extension says how: .svg, .png, .pdf, or .dot for the text
// itself. The file appears when it is complete. Code unsupported when `dot` is not installed,
// invalid_argument for another extension, io when the file cannot be written.
Status draw(const std::string& dot, const std::string& path);

}  // namespace ptero::inspect
