// SPDX-License-Identifier: BSD-3-Clause
#include "base/result.h"

namespace ptero {

ErrorCodeInfo error_code_info(ErrorCode code) {
  // Exit status 1 is kept for "ran, but the answer is wrong" (a failed verification).
  switch (code) {
    case ErrorCode::invalid_argument:
      return {"invalid_argument", 2};
    case ErrorCode::invalid_program:
      return {"invalid_program", 3};
    case ErrorCode::unsupported:
      return {"unsupported", 4};
    case ErrorCode::io:
      return {"io", 5};
    case ErrorCode::out_of_memory:
      return {"out_of_memory", 6};
    case ErrorCode::device_lost:
      return {"device_lost", 7};
    case ErrorCode::timeout:
      return {"timeout", 8};
    case ErrorCode::cancelled:
      return {"cancelled", 130};
    case ErrorCode::internal:
      return {"internal", 70};
  }
  return {"internal", 70};
}

std::string Error::to_string() const {
  std::string text = message_;
  for (const std::string& line : context_) {
    text += " / ";
    text += line;
  }
  return text;
}

}  // namespace ptero
