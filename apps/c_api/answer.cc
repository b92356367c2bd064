// SPDX-License-Identifier: BSD-3-Clause
// Conversations and answers.
#include <chrono>
#include <random>

#include "c_api/handles.h"
#include "gpu/native/wait.h"
#include "llm/chat.h"

namespace ptero::c_api {
namespace {

struct Callbacks {
  ptero_progress_callback on_prompt;
  ptero_token_callback on_token;
  void* user;
};

Result<const llm::Model*> language_of(const SessionState& state) {
  PTERO_REJECT_IF(state.language == nullptr, unsupported, "{}", state.model->not_language);
  return state.model->language.get();
}

Status answer(SessionState& state, std::vector<uint32_t> prompt, const ptero_options& from,
              const Callbacks& callbacks) {
  llm::GenerationOptions options = from.generation;
  options.sampling.seed = from.seed ? *from.seed : std::random_device{}();
  // The flag is also looked at below, for what takes long between two calls.
  options.on_prompt = [&](size_t done, size_t total) {
    const bool more =
        callbacks.on_prompt == nullptr || callbacks.on_prompt(callbacks.user, done, total) == 0;
    return more && !state.cancelled;
  };
  options.on_token = [&](const llm::TokenEvent& event) {
    const bool more =
        callbacks.on_token == nullptr ||
        callbacks.on_token(callbacks.user, event.id, event.text.data(), event.text.size()) == 0;
    return more && !state.cancelled;
  };
  state.cancelled = false;
  state.answer = {};
  PTERO_ASSIGN_OR_RETURN(
      const auto generation,
      llm::Generation::start(*state.language, std::move(prompt), std::move(options)));
  while (!generation->done()) {
    const Status status = gpu::wait(*generation, std::chrono::milliseconds(50));
    if (!status.ok() && status.error().code() != ErrorCode::timeout) {
      return status.error();
    }
    if (state.cancelled) {
      generation->cancel();
    }
  }
  PTERO_ASSIGN_OR_RETURN(state.answer, generation->take());
  return ok_status();
}

const llm::GenerationResult* answer_of(const ptero_session* session) {
  return is_valid(session) ? &session->state->answer : nullptr;
}

}  // namespace
}  // namespace ptero::c_api

using namespace ptero;
using namespace ptero::c_api;

ptero_status ptero_chat_create(ptero_chat** out) {
  return guarded([&]() -> Status {
    PTERO_RETURN_IF_ERROR(check_pointer(out, "out"));
    *out = new ptero_chat;
    return ok_status();
  });
}

void ptero_chat_free(ptero_chat* chat) {
  if (is_valid(chat)) {
    chat->kind = {};
    delete chat;
  }
}

ptero_status ptero_chat_add(ptero_chat* chat, const char* role, const char* content) {
  return guarded([&]() -> Status {
    PTERO_RETURN_IF_ERROR(check(chat));
    PTERO_RETURN_IF_ERROR(check_pointer(role, "role"));
    PTERO_RETURN_IF_ERROR(check_pointer(content, "content"));
    chat->messages.push_back({role, content});
    return ok_status();
  });
}

ptero_status ptero_chat_truncate(ptero_chat* chat, size_t count) {
  return guarded([&]() -> Status {
    PTERO_RETURN_IF_ERROR(check(chat));
    PTERO_REJECT_IF(count > chat->messages.size(), invalid_argument,
                    "The chat has {} messages and cannot go back to {}.", chat->messages.size(),
                    count);
    chat->messages.resize(count);
    return ok_status();
  });
}

ptero_status ptero_answer_chat(ptero_session* session, const ptero_chat* chat,
                               const ptero_options* options, ptero_progress_callback on_prompt,
                               ptero_token_callback on_token, void* user) {
  return in_turn(session, [&](SessionState& state) -> Status {
    PTERO_ASSIGN_OR_RETURN(const llm::Model* const model, language_of(state));
    PTERO_RETURN_IF_ERROR(check(chat));
    PTERO_ASSIGN_OR_RETURN(const ptero_options* const from, or_defaults(options));
    PTERO_ASSIGN_OR_RETURN(std::vector<uint32_t> prompt,
                           llm::chat_tokens(*model, chat->messages, from->chat_template_kwargs));
    return answer(state, std::move(prompt), *from, {on_prompt, on_token, user});
  });
}

ptero_status ptero_answer_text(ptero_session* session, const char* text,
                               const ptero_options* options, ptero_progress_callback on_prompt,
                               ptero_token_callback on_token, void* user) {
  return in_turn(session, [&](SessionState& state) -> Status {
    PTERO_ASSIGN_OR_RETURN(const llm::Model* const model, language_of(state));
    PTERO_RETURN_IF_ERROR(check_pointer(text, "text"));
    PTERO_ASSIGN_OR_RETURN(const ptero_options* const from, or_defaults(options));
    PTERO_REJECT_IF(!model->tokenizer(), unsupported,
                    "The model brings no tokenizer; load it with option tokenizer.");
    PTERO_ASSIGN_OR_RETURN(std::vector<uint32_t> prompt, model->tokenizer()->encode(text));
    return answer(state, std::move(prompt), *from, {on_prompt, on_token, user});
  });
}

ptero_status ptero_answer_tokens(ptero_session* session, const uint32_t* ids, size_t count,
                                 const ptero_options* options, ptero_progress_callback on_prompt,
                                 ptero_token_callback on_token, void* user) {
  return in_turn(session, [&](SessionState& state) -> Status {
    PTERO_RETURN_IF_ERROR(language_of(state));
    PTERO_RETURN_IF_ERROR(check_pointer(ids, "ids"));
    PTERO_ASSIGN_OR_RETURN(const ptero_options* const from, or_defaults(options));
    return answer(state, std::vector<uint32_t>(ids, ids + count), *from,
                  {on_prompt, on_token, user});
  });
}

int32_t ptero_last_reason(const ptero_session* session) {
  const llm::GenerationResult* answer = answer_of(session);
  return answer == nullptr ? PTERO_REASON_END : static_cast<int32_t>(answer->reason);
}

const char* ptero_last_text(const ptero_session* session) {
  const llm::GenerationResult* answer = answer_of(session);
  return answer == nullptr ? "" : answer->text.c_str();
}

const uint32_t* ptero_last_tokens(const ptero_session* session, size_t* count) {
  const llm::GenerationResult* answer = answer_of(session);
  if (count != nullptr) {
    *count = answer == nullptr ? 0 : answer->tokens.size();
  }
  return answer == nullptr ? nullptr : answer->tokens.data();
}

size_t ptero_last_prompt_tokens(const ptero_session* session) {
  const llm::GenerationResult* answer = answer_of(session);
  return answer == nullptr ? 0 : answer->prompt_tokens;
}

size_t ptero_last_reused_tokens(const ptero_session* session) {
  const llm::GenerationResult* answer = answer_of(session);
  return answer == nullptr ? 0 : answer->reused_tokens;
}

double ptero_last_prompt_seconds(const ptero_session* session) {
  const llm::GenerationResult* answer = answer_of(session);
  return answer == nullptr ? 0 : answer->prompt_time.count();
}

double ptero_last_answer_seconds(const ptero_session* session) {
  const llm::GenerationResult* answer = answer_of(session);
  return answer == nullptr ? 0 : answer->decode_time.count();
}
