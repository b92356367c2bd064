// SPDX-License-Identifier: BSD-3-Clause
// A parsed template. Nodes live in the deques of their template and point at each other, so that
// neither copying nor freeing recurses. Internal to src/text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ptero::text::jinja {

enum class Op {
  none,
  boolean,
  integer,
  real,
  string,  // literals
  name,
  list,
  dict,       // dict: key, value, key, value, ...
  attribute,  // children[0].text
  subscript,
  slice,  // slice: base, start, stop, step (null where left out)
  call,   // children: callee, positional arguments
  filter,
  test,  // text: its name; children: input, arguments
  not_,
  negative,
  positive,
  and_,
  or_,
  if_else,  // value, condition, alternative or null
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  concat,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in
};

struct Expr {
  Op op = Op::none;
  size_t position = 0;  // in the source, for messages
  std::string text;
  int64_t integer = 0;  // also a boolean
  double real = 0;
  std::vector<const Expr*> children;
  std::vector<std::pair<std::string, const Expr*>> named;  // arguments; "*" is a list of them
  size_t depth = 1;                                        // of the tree below
};

enum class Tag { text, output, for_, if_, set, set_block, macro, break_, continue_ };

struct Node;
using Body = std::vector<const Node*>;

struct Branch {
  const Expr* condition = nullptr;  // null: always
  Body body;
};

struct Node {
  Tag tag = Tag::text;
  size_t position = 0;
  std::string text;       // text; of set and macro the name, of set on a namespace its name
  std::string attribute;  // set ns.attribute
  std::vector<std::string> names;   // targets of for and set
  const Expr* expr = nullptr;       // output, iterable, value
  const Expr* condition = nullptr;  // for ... if
  std::vector<Branch> branches;     // of if
  Body body;
  Body otherwise;                                               // for ... else
  std::vector<std::pair<std::string, const Expr*>> parameters;  // of a macro; default or null
};

struct Template {
  std::string source;
  std::deque<Expr> exprs;
  std::deque<Node> nodes;
  Body body;
};

// "line 3" of a position.
size_t line_of(std::string_view source, size_t position);

Result<Template> parse_template(std::string_view source);

}  // namespace ptero::text::jinja
