// SPDX-License-Identifier: BSD-3-Clause
// Scopes and tags.
#include "text/jinja/interpreter.h"

namespace ptero::text::jinja {

void Interpreter::Scope::set(std::string_view name, Value value) {
  for (auto& [key, old] : variables) {
    if (key == name) {
      old = value;
      return;
    }
  }
  variables.emplace_back(name, value);
}

const Value* Interpreter::Scope::find(std::string_view name, size_t* seen) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
    if (seen != nullptr) {
      *seen += scope->variables.size();
    }
    for (const auto& [key, value] : scope->variables) {
      if (key == name) {
        return &value;
      }
    }
  }
  return nullptr;
}

std::string Interpreter::run() {
  std::string out;
  body(template_.body, globals_, out);
  return out;
}

void Interpreter::write(std::string& out, std::string_view text) {
  if (out.size() + text.size() > max_output_) {
    heap_.fail(fmt::format("its text is longer than the limit ({} bytes)", max_output_));
  } else if (heap_.charge(text.size())) {
    out += text;
  }
}

Interpreter::Flow Interpreter::body(const Body& nodes, Scope& scope, std::string& out) {
  for (const Node* one : nodes) {
    if (!heap_.step()) {
      break;
    }
    const Flow flow = node(*one, scope, out);
    if (heap_.failed()) {
      break;
    }
    if (flow != Flow::go_on) {
      return flow;
    }
  }
  return Flow::go_on;
}

Interpreter::Flow Interpreter::node(const Node& node, Scope& scope, std::string& out) {
  if (++depth_ > kMaxDepth) {
    heap_.fail("it nests too deeply");
  }
  Flow flow = Flow::go_on;
  switch (heap_.failed() ? Tag::text : node.tag) {
    case Tag::text:
      write(out, node.text);
      break;
    case Tag::output:
      write(out, heap_.str(eval(*node.expr, scope)));
      break;
    case Tag::for_:
      flow = for_loop(node, scope, out);
      break;
    case Tag::if_:
      for (const Branch& branch : node.branches) {
        if (branch.condition == nullptr || heap_.truth(eval(*branch.condition, scope))) {
          flow = heap_.failed() ? flow : body(branch.body, scope, out);
          break;
        }
      }
      break;
    case Tag::set:
    case Tag::set_block:
      set_statement(node, scope);
      break;
    case Tag::macro: {
      Value value = Value::of(Kind::macro);
      value.macro = &node;
      scope.set(node.text, value);
      break;
    }
    case Tag::break_:
      flow = Flow::break_;
      break;
    case Tag::continue_:
      flow = Flow::continue_;
      break;
  }
  --depth_;
  if (heap_.failed() && error_line_ == 0) {  // the innermost tag comes first
    error_line_ = line_of(template_.source, node.position);
  }
  return flow;
}

Interpreter::Flow Interpreter::for_loop(const Node& node, Scope& scope, std::string& out) {
  const List* items = heap_.elements(eval(*node.expr, scope));
  if (items == nullptr || heap_.failed()) {
    return Flow::go_on;
  }
  if (node.condition != nullptr) {
    List kept;
    for (const Value& item : *items) {
      Scope inner{{}, &scope};
      assign(node.names, item, inner);
      if (!heap_.step() || (heap_.truth(eval(*node.condition, inner)) && !heap_.failed())) {
        kept.push_back(item);
      }
    }
    items = heap_.list(std::move(kept)).list;
  }
  Loop* loop = heap_.loop(items);
  if (const Value* outer = scope.find("loop"); outer != nullptr && outer->is(Kind::loop)) {
    loop->depth = outer->loop->depth + 1;
  }
  for (; loop->index < items->size() && heap_.step(); ++loop->index) {
    Scope inner{{}, &scope};
    Value value = Value::of(Kind::loop);
    value.loop = loop;
    inner.set("loop", value);
    assign(node.names, (*items)[loop->index], inner);
    if (body(node.body, inner, out) == Flow::break_) {
      break;
    }
  }
  return items->empty() ? body(node.otherwise, scope, out) : Flow::go_on;
}

void Interpreter::assign(const std::vector<std::string>& names, const Value& value, Scope& scope) {
  heap_.work(scope.variables.size() * sizeof(Value));
  if (names.size() == 1) {
    return scope.set(names[0], value);
  }
  const List* items = heap_.elements(value);
  if (items == nullptr || items->size() != names.size()) {
    return heap_.fail(fmt::format("{} values are wanted, but there are {}", names.size(),
                                  items == nullptr ? 0 : items->size()));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    scope.set(names[i], (*items)[i]);
  }
}

void Interpreter::set_statement(const Node& node, Scope& scope) {
  Value value;
  if (node.tag == Tag::set_block) {
    std::string text;
    body(node.body, scope, text);
    value = heap_.string(std::move(text));
  } else {
    value = eval(*node.expr, scope);
  }
  if (heap_.failed()) {
    return;
  }
  if (node.attribute.empty()) {
    return assign(node.names, value, scope);
  }
  const Value* target = scope.find(node.text);
  if (target == nullptr || !target->is(Kind::space)) {
    return heap_.fail(fmt::format("({}) is no namespace", node.text));
  }
  for (auto& [key, old] : target->dict->items) {
    if (*key.string == node.attribute) {
      old = value;
      return;
    }
  }
  target->dict->items.emplace_back(heap_.string(node.attribute), value);
}

}  // namespace ptero::text::jinja
