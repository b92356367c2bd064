// SPDX-License-Identifier: BSD-3-Clause
#include "ops/all_operators.h"

namespace ptero::ops {

const graph::OperatorRegistry& all_operators() {
  static const graph::OperatorRegistry registry = [] {
    graph::OperatorRegistry operators;
    register_all(operators);
    return operators;
  }();
  return registry;
}

}  // namespace ptero::ops
