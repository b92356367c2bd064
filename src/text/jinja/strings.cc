// SPDX-License-Identifier: BSD-3-Clause
#include "text/jinja/strings.h"

#include <algorithm>

#include "text/utf8.h"

namespace ptero::text::jinja {

std::string_view strip(std::string_view text, const Value* set, bool left, bool right) {
  const auto in_set = [&](std::string_view character) {
    return set == nullptr || !set->is(Kind::string)
               ? is_white_space(utf8_step(character).code_point) ||
                     (character[0] >= 0x1C && character[0] <= 0x1F)
               : set->text().find(character) != std::string_view::npos;
  };
  while (left && !text.empty() && in_set(text.substr(0, utf8_size(text, 0)))) {
    text.remove_prefix(utf8_size(text, 0));
  }
  while (right && !text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) {
      --start;
    }
    if (!in_set(text.substr(start))) {
      break;
    }
    text = text.substr(0, start);
  }
  return text;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        int64_t most, Heap& heap) {
  std::string out;
  size_t done = 0;
  while (most-- != 0 && !heap.failed()) {
    const size_t at = from.empty() ? done : text.find(from, done);
    if (at == std::string_view::npos) {
      break;
    }
    out.append(text.substr(done, at - done)).append(to);
    done = at + from.size();
    if (from.empty()) {
      if (done == text.size()) {
        break;
      }
      const size_t size = utf8_size(text, done);
      out.append(text.substr(done, size));
      done += size;
    }
    heap.charge(to.size() + 1);
  }
  return out.append(text.substr(done));
}

// Each word starts with an upper case letter, or only the first of the text does.
std::string capitalized(std::string_view text, bool every_word) {
  std::string out;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const size_t size = utf8_size(text, at);
    const std::string_view character = text.substr(at, size);
    out += inside ? lower_case(character) : upper_case(character);
    const uint32_t c = utf8_step(character).code_point;
    inside = !every_word || is_letter(c);
    at += size;
  }
  return out;
}

List split(std::string_view text, const Value* separator, int64_t most, Heap& heap) {
  List parts;
  if (separator != nullptr && separator->is(Kind::string) && !separator->string->empty()) {
    while (most-- != 0) {
      const size_t at = text.find(separator->text());
      if (at == std::string_view::npos) {
        break;
      }
      parts.push_back(heap.string(std::string(text.substr(0, at))));
      text.remove_prefix(at + separator->text().size());
    }
    parts.push_back(heap.string(std::string(text)));
    return parts;
  }
  text = strip(text, nullptr, true, false);
  while (!text.empty() && !heap.failed()) {
    size_t end = 0;
    while (end < text.size() && !is_white_space(utf8_step(text.substr(end)).code_point)) {
      end += utf8_size(text, end);
    }
    end = most-- == 0 ? text.size() : end;
    parts.push_back(heap.string(
        std::string(end == text.size() ? strip(text, nullptr, false, true) : text.substr(0, end))));
    text = strip(text.substr(end), nullptr, true, false);
  }
  return parts;
}

std::string indented(std::string_view text, std::string_view indent, bool first, bool blank) {
  std::string out;
  for (bool start = true;; start = false) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (start ? first : blank || !line.empty()) {
      out += indent;
    }
    out += line;
    if (end == text.size()) {
      return out;
    }
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace ptero::text::jinja
