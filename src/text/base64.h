// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ptero::text {

// With or without padding. Code invalid_program for anything else.
Result<std::string> decode_base64(std::string_view text);

}  // namespace ptero::text
