// SPDX-License-Identifier: BSD-3-Clause
// Language models through the C functions alone, as a program elsewhere meets them.
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "c_api/testing.h"

namespace ptero::c_api::testing {
namespace {

TEST_CASE("greedy answers are equal each time, in two sessions of one model at once") {
  const Session one;
  const Session two;
  const std::vector<uint32_t> first = greedy(one);
  CHECK(first.size() == 12);
  CHECK(std::set<uint32_t>(first.begin(), first.end()).size() > 2);
  CHECK(ptero_last_reason(one) == PTERO_REASON_LENGTH);
  CHECK(ptero_last_prompt_tokens(one) == kPrompt.size());
  CHECK(ptero_last_reused_tokens(one) == 0);
  CHECK(ptero_session_length(one) == kPrompt.size() + 11);

  CHECK(greedy(two, "3") == std::vector<uint32_t>(first.begin(), first.begin() + 3));
  CHECK(greedy(one) == first);
  CHECK(ptero_last_reused_tokens(one) == kPrompt.size() - 1);
  CHECK(greedy(two) == first);
  succeed(ptero_session_rewind(one, 0));
  CHECK(greedy(one) == first);
  fail(ptero_session_rewind(one, 1000), PTERO_INVALID_ARGUMENT, "cannot go back to 1000");
}

TEST_CASE("another context than the file's, and one beyond what the model was trained for") {
  const Session usual;
  const std::vector<uint32_t> want = greedy(usual);
  ptero_model* model = nullptr;
  const Options options({{"ctx-size", "64"}});
  succeed(
      ptero_model_load(shared_device(), model_file().c_str(), options, nullptr, nullptr, &model));
  CHECK(ptero_model_context(model) == 64);
  {
    const Session session(model);
    CHECK(greedy(session) == want);
  }
  ptero_model_free(model);
  const Options beyond({{"ctx-size", "65"}});
  fail(ptero_model_load(shared_device(), model_file().c_str(), beyond, nullptr, nullptr, &model),
       PTERO_INVALID_ARGUMENT, "trained for (64)");
}

TEST_CASE("text streams in whole characters and adds up") {
  struct Seen {
    std::string text;
    std::vector<uint32_t> tokens;
    size_t prompt_calls = 0;
    bool whole = true;
  } seen;
  const Session session;
  ptero_chat* chat = nullptr;
  succeed(ptero_chat_create(&chat));
  succeed(ptero_chat_add(chat, "user", "hello there"));
  const Options options({{"temp", "3"},
                         {"top-k", "0"},
                         {"top-p", "1"},
                         {"min-p", "0"},
                         {"seed", "4"},
                         {"n-predict", "30"}});
  succeed(ptero_answer_chat(
      session, chat, options,
      [](void* user, uint64_t done, uint64_t total) -> int32_t {
        CHECK(done <= total);
        ++static_cast<Seen*>(user)->prompt_calls;
        return 0;
      },
      [](void* user, uint32_t token, const char* text, size_t size) -> int32_t {
        auto& to = *static_cast<Seen*>(user);
        // A character never begins in its middle, nor ends before its end.
        to.whole =
            to.whole && (size == 0 || ((text[0] & 0xC0) != 0x80 && text[size - 1] != '\xC3'));
        to.text.append(text, size);
        if (to.tokens.size() < 30) {
          to.tokens.push_back(token);
        }
        return 0;
      },
      &seen));
  CHECK(seen.prompt_calls >= 2);  // 12 tokens, at most 8 a run
  CHECK(seen.whole);
  const bool beyond_ascii = seen.text.find("\u00e9") != std::string::npos ||
                            seen.text.find("\ufffd") != std::string::npos;
  CHECK(beyond_ascii);
  CHECK(seen.text == ptero_last_text(session));
  CHECK(seen.tokens == session.tokens());
  size_t size = 0;
  succeed(
      ptero_decode(shared_model(), seen.tokens.data(), seen.tokens.size(), 1, nullptr, 0, &size));
  std::string decoded(size, '\0');
  succeed(ptero_decode(shared_model(), seen.tokens.data(), seen.tokens.size(), 1, decoded.data(),
                       decoded.size(), &size));
  CHECK(decoded == seen.text);

  // The template's line end came with it: the same as the text, and then all is known but a token.
  succeed(ptero_answer_text(session, "hello there\n", options, nullptr, nullptr, nullptr));
  CHECK(ptero_last_reused_tokens(session) == 11);
  CHECK(session.tokens() == seen.tokens);
  succeed(ptero_chat_truncate(chat, 0));
  fail(ptero_chat_truncate(chat, 1), PTERO_INVALID_ARGUMENT, "has 0 messages");
  ptero_chat_free(chat);
}

TEST_CASE("tokens and text, as much as there is room for") {
  uint32_t ids[3] = {99, 99, 99};
  size_t count = 0;
  succeed(ptero_encode(shared_model(), "b\u00e9", 1, ids, 2, &count));
  CHECK(count == 3);
  CHECK(ids[0] == 1);
  CHECK(ids[1] == 28);
  CHECK(ids[2] == 99);
  succeed(ptero_encode(shared_model(), "", 1, nullptr, 0, &count));
  CHECK(count == 0);
}

TEST_CASE("a callback cancels in the middle, and the session goes on") {
  const Session session;
  const std::vector<uint32_t> whole = greedy(session);
  const Options options({{"temp", "0"}});
  size_t left = 3;
  const auto counts_down = [](void* user, uint32_t, const char*, size_t) -> int32_t {
    return --*static_cast<size_t*>(user) == 0 ? 1 : 0;
  };
  succeed(ptero_answer_tokens(session, kPrompt.data(), kPrompt.size(), options, nullptr,
                              counts_down, &left));
  CHECK(ptero_last_reason(session) == PTERO_REASON_CANCELLED);
  CHECK(session.tokens() == std::vector<uint32_t>(whole.begin(), whole.begin() + 3));
  CHECK(greedy(session) == whole);

  // During the prompt: nothing was answered.
  succeed(ptero_session_rewind(session, 0));
  succeed(ptero_answer_tokens(
      session, kPrompt.data(), kPrompt.size(), options,
      [](void*, uint64_t, uint64_t) -> int32_t { return 1; }, nullptr, nullptr));
  CHECK(ptero_last_reason(session) == PTERO_REASON_CANCELLED);
  CHECK(session.tokens().empty());
  CHECK(greedy(session) == whole);

  // By the function, from a callback; the next answer is not touched by it.
  succeed(ptero_answer_tokens(
      session, kPrompt.data(), kPrompt.size(), options, nullptr,
      [](void* user, uint32_t, const char*, size_t) -> int32_t {
        ptero_cancel(static_cast<ptero_session*>(user));
        return 0;
      },
      static_cast<ptero_session*>(session)));
  CHECK(ptero_last_reason(session) == PTERO_REASON_CANCELLED);
  CHECK(session.tokens().size() == 1);
  CHECK(greedy(session) == whole);

  // Loading.
  ptero_model* model = nullptr;
  fail(ptero_model_load(
           shared_device(), model_file().c_str(), nullptr,
           [](void*, uint64_t, uint64_t) -> int32_t { return 1; }, nullptr, &model),
       PTERO_CANCELLED, "Loading was cancelled");
  CHECK(model == nullptr);
}

}  // namespace
}  // namespace ptero::c_api::testing
