// SPDX-License-Identifier: BSD-3-Clause
// The libraries never print. What a user may want to know goes to a callback that the front end
// supplies; without one it is dropped.
#pragma once

#include <functional>
#include <string_view>

namespace ptero {

enum class LogLevel { debug, info, warning, error };

// Called on the thread that uses the object it was given to. Must not call back into it.
using LogCallback = std::function<void(LogLevel level, std::string_view sentence)>;

}  // namespace ptero
