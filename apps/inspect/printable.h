// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

namespace ptero::inspect {

// `text` with quotes, backslashes and everything escaped that is not readable UTF-8: names come
// from strangers' files and may hold control characters that steer a terminal or turn the reading
// direction.
std::string printable(std::string_view text);

}  // namespace ptero::inspect
