// SPDX-License-Identifier: BSD-3-Clause
// Values as Python and JSON write them.
#include <cmath>

#include "text/jinja/value.h"

namespace ptero::text::jinja {
namespace {

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void append_python_string(std::string& out, std::string_view text) {
  const bool single =
      text.find('\'') == std::string_view::npos || text.find('"') != std::string_view::npos;
  const char quote = single ? '\'' : '"';
  out += quote;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (c == quote) {
          out += '\\';
        }
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += quote;
}

void new_line(std::string& out, int indent, size_t level) {
  if (indent >= 0) {
    out += '\n';
    out.append(static_cast<size_t>(indent) * level, ' ');
  }
}

}  // namespace

std::string real_text(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value > 0 ? "inf" : "-inf";
  }
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) {
    text += ".0";
  }
  return text;
}

void Heap::append(std::string& out, const Value& value, bool python, int indent, size_t level) {
  if (level > kMaxLevel) {
    return fail("a value nests too deeply to be printed");
  }
  switch (value.kind) {
    case Kind::undefined:
      if (!python) {
        fail("an undefined value cannot become JSON");
      }
      break;
    case Kind::none:
      out += python ? "None" : "null";
      break;
    case Kind::boolean:
      out += value.integer != 0 ? (python ? "True" : "true") : (python ? "False" : "false");
      break;
    case Kind::integer:
      out += fmt::format("{}", value.integer);
      break;
    case Kind::real:
      out += real_text(value.real);
      break;
    case Kind::string:
      if (!charge(value.string->size())) {
        return;
      }
      if (python) {
        append_python_string(out, value.text());
      } else {
        append_json_string(out, value.text());
      }
      break;
    case Kind::list:
    case Kind::dict:
    case Kind::space:
      append_container(out, value, python, indent, level);
      break;
    case Kind::loop:
    case Kind::function:
    case Kind::macro:
      fail(fmt::format("{} cannot be printed", kind_name(value)));
  }
}

void Heap::append_container(std::string& out, const Value& value, bool python, int indent,
                            size_t level) {
  const bool is_list = value.is(Kind::list);
  const size_t count = is_list ? value.list->size() : value.dict->items.size();
  out += is_list ? '[' : '{';
  for (size_t i = 0; i < count && step() && charge(16 + level * 16); ++i) {
    if (i > 0) {
      out += indent >= 0 ? "," : ", ";
    }
    new_line(out, indent, level + 1);
    if (is_list) {
      append(out, (*value.list)[i], python, indent, level + 1);
      continue;
    }
    const auto& [key, item] = value.dict->items[i];
    if (python || key.is(Kind::string)) {
      append(out, key, python, indent, level + 1);
    } else {
      append_json_string(out, repr(key));
    }
    out += ": ";
    append(out, item, python, indent, level + 1);
  }
  if (count > 0) {
    new_line(out, indent, level);
  }
  out += is_list ? ']' : '}';
}

std::string Heap::str(const Value& value) {
  if (value.is(Kind::undefined)) {
    return "";
  }
  return value.is(Kind::string) ? *value.string : repr(value);
}

std::string Heap::repr(const Value& value) {
  std::string out;
  append(out, value, true, -1, 0);
  return out;
}

std::string Heap::json(const Value& value, int indent) {
  std::string out;
  append(out, value, false, indent, 0);
  return out;
}

}  // namespace ptero::text::jinja
