// SPDX-License-Identifier: BSD-3-Clause
#include "text/utf8.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include <utf8proc.h>

namespace ptero::text {
namespace {

utf8proc_category_t category(uint32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

bool between(utf8proc_category_t value, utf8proc_category_t first, utf8proc_category_t last) {
  return value >= first && value <= last;
}

// utf8proc orders combining marks in quadratic time. Long runs of them, which no language has, are
// put in the order that normalising asks for beforehand; the result is the same.
std::string_view order_long_runs(std::string_view text, std::string& storage) {
  constexpr size_t kLongRun = 64;
  struct Mark {
    int combining_class;
    std::string_view bytes;
  };
  std::vector<Mark> run;
  size_t done = 0;
  bool copied = false;
  const auto flush = [&](size_t end) {
    if (run.size() > kLongRun) {
      if (!copied) {
        storage.clear();
        copied = true;
      }
      const size_t start = static_cast<size_t>(run.front().bytes.data() - text.data());
      storage.append(text.substr(done, start - done));
      std::stable_sort(run.begin(), run.end(), [](const Mark& a, const Mark& b) {
        return a.combining_class < b.combining_class;
      });
      for (const Mark& mark : run) {
        storage.append(mark.bytes);
      }
      done = end;
    }
    run.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    const int combining_class =
        step.code_point < 0x300
            ? 0
            : utf8proc_get_property(static_cast<utf8proc_int32_t>(step.code_point))
                  ->combining_class;
    if (combining_class != 0) {
      run.push_back({combining_class, text.substr(at, step.size)});
    } else {
      flush(at);
    }
    at += step.size;
  }
  flush(text.size());
  if (!copied) {
    return text;
  }
  storage.append(text.substr(done));
  return storage;
}

}  // namespace

Utf8Step utf8_step(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    return {lead, 1, true, false};
  }
  if (lead < 0xC2 || lead > 0xF4) {
    return {};
  }
  const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte rules out long forms, surrogates and what lies beyond U+10FFFF.
  unsigned low = 0x80, high = 0xBF;
  if (lead == 0xE0) {
    low = 0xA0;
  }
  if (lead == 0xED) {
    high = 0x9F;
  }
  if (lead == 0xF0) {
    low = 0x90;
  }
  if (lead == 0xF4) {
    high = 0x8F;
  }
  uint32_t code_point = lead & (0xFFu >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if (i == text.size()) {
      return {0xFFFD, i, false, true};
    }
    if (byte(i) < low || byte(i) > high) {
      return {0xFFFD, i, false, false};
    }
    code_point = code_point << 6 | (byte(i) & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  return {code_point, size, true, false};
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

std::string_view valid_utf8(std::string_view text, std::string& storage) {
  size_t good = 0;
  bool copied = false;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (!step.valid) {
      if (!copied) {
        storage.clear();
        copied = true;
      }
      storage.append(text.substr(good, at - good)).append(kReplacement);
      good = at + step.size;
    }
    at += step.size;
  }
  if (!copied) {
    return text;
  }
  storage.append(text.substr(good));
  return storage;
}

bool is_white_space(uint32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_word(uint32_t c) {
  if (c < 0x80) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  }
  const utf8proc_category_t kind = category(c);
  return between(kind, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_ND) ||
         kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_PC;
}

bool is_punctuation(uint32_t c) {
  if (c < 0x80) {
    return c > 0x20 && c < 0x7F && !(is_word(c) && c != '_');
  }
  return between(category(c), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

bool is_numeric(uint32_t c) {
  return between(category(c), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

bool is_letter(uint32_t c) {
  return between(category(c), UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO);
}

bool is_mark(uint32_t c) {
  return between(category(c), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME);
}

bool is_nonspacing_mark(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_MN;
}

bool is_other(uint32_t c) {
  return between(category(c), UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO);
}

bool is_cjk(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

size_t skip_white_space(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (!is_white_space(step.code_point)) {
      break;
    }
    at += step.size;
  }
  return at;
}

size_t trim_white_space(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t start = end - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) {
      --start;
    }
    if (!is_white_space(utf8_step(text.substr(start)).code_point)) {
      break;
    }
    end = start;
  }
  return end;
}

Result<std::string> normal_form(std::string_view text, NormalForm form) {
  int options = UTF8PROC_STABLE;
  const bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
  options |= composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) {
    options |= UTF8PROC_COMPAT;
  }
  std::string ordered;
  text = order_long_runs(text, ordered);
  utf8proc_uint8_t* raw = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &raw,
                                             static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(raw, &std::free);
  PTERO_REJECT_IF(size < 0, invalid_argument, "Text cannot be brought into a normal form: {}.",
                  utf8proc_errmsg(size));
  return std::string(reinterpret_cast<const char*>(raw), static_cast<size_t>(size));
}

std::string lower_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (step.code_point == 0x130) {  // the one character whose lower case is two
      out += "i\xCC\x87";
    } else {
      append_utf8(out, static_cast<uint32_t>(
                           utf8proc_tolower(static_cast<utf8proc_int32_t>(step.code_point))));
    }
    at += step.size;
  }
  return out;
}

std::string upper_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (step.code_point == 0xDF) {
      out += "SS";
    } else {
      append_utf8(out, static_cast<uint32_t>(
                           utf8proc_toupper(static_cast<utf8proc_int32_t>(step.code_point))));
    }
    at += step.size;
  }
  return out;
}

size_t grapheme_size(std::string_view text, size_t position) {
  Utf8Step step = utf8_step(text.substr(position));
  size_t end = position + step.size;
  utf8proc_int32_t state = 0;
  while (end < text.size()) {
    const Utf8Step next = utf8_step(text.substr(end));
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(step.code_point),
                                         static_cast<utf8proc_int32_t>(next.code_point), &state)) {
      break;
    }
    end += next.size;
    step = next;
  }
  return end - position;
}

}  // namespace ptero::text
