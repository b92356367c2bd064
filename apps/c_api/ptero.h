/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ptero from C and from whatever calls C: load a program, run it, let a language model answer.
 * docs/c-api.md shows it at work.
 *
 * Errors: a function that can fail returns a ptero_status. When that is not PTERO_OK, nothing was
 * made, and ptero_last_error() is a sentence for people. NULL and handles of another kind are
 * errors like others. No exception comes out.
 *
 * Ownership: what a function hands out through an `out` parameter belongs to the caller and ends
 * with its free function; order does not matter, as handles keep what they need. Freeing NULL does
 * nothing. A free function may be called at any time and from any thread (a finalizer's, say): what
 * is in use goes away when it no longer is. Pointers that are returned otherwise belong to the
 * handle they came from; each function says how long they last.
 *
 * Threads: everything made from one ptero_device (models, sessions) is used from one thread at a
 * time, whichever it is. A call that comes while another is running, be it from another thread or
 * from a callback, does nothing and returns PTERO_BUSY. Devices do not know of each other: two may
 * work in two threads. ptero_cancel(), ptero_encode(), ptero_decode() and the free functions may be
 * called at any time. Options, tensors and chats belong to one thread at a time each.
 *
 * Text is UTF-8 and ends with a zero byte unless a size says otherwise. What is not UTF-8 becomes
 * U+FFFD.
 */
#ifndef PTERO_H
#define PTERO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t ptero_status;
enum {
  PTERO_OK = 0,
  PTERO_INVALID_ARGUMENT = 2, /* the caller is wrong */
  PTERO_INVALID_PROGRAM = 3,  /* the file is wrong */
  PTERO_UNSUPPORTED = 4,      /* right, but this build, model or adapter cannot do it */
  PTERO_IO = 5,               /* a file cannot be opened or read */
  PTERO_OUT_OF_MEMORY = 6,
  PTERO_DEVICE_LOST = 7, /* the GPU is gone: free everything of this device and open it again */
  PTERO_TIMEOUT = 8,
  PTERO_BUSY = 9,      /* see Threads above */
  PTERO_INTERNAL = 70, /* Ptero is wrong */
  PTERO_CANCELLED = 130
};

/* "0.1.0"; lasts for ever. */
const char* ptero_version(void);

/* What was wrong with the last call of this thread that failed; "" when none did. Lasts until the
 * next call of this thread that fails. Never NULL. */
const char* ptero_last_error(void);

/* ---- options ---- */

/* What `ptero` takes as flags, as keys and values without the dashes: "adapter", "tokenizer",
 * "temp", and the keys of --option such as "q4_gemm". One object may serve all that takes options;
 * each takes what concerns it. NULL instead of one means: all as it comes. They are read during the
 * call only. */
typedef struct ptero_options ptero_options;

ptero_status ptero_options_create(ptero_options** out);
void ptero_options_free(ptero_options* options);
/* PTERO_INVALID_ARGUMENT for a key or a value that is none; the sentence lists those there are. */
ptero_status ptero_options_set(ptero_options* options, const char* key, const char* value);
/* A line for each key, for people; lasts for ever. */
const char* ptero_options_help(void);

/* ---- devices ---- */

/* One of the adapters of this machine. `type`: "discrete", "integrated", "cpu" or "unknown". The
 * texts last for the call. */
typedef void (*ptero_adapter_callback)(void* user, size_t index, const char* name,
                                       const char* driver, const char* type);
ptero_status ptero_list_adapters(ptero_adapter_callback each, void* user);

/* A sentence that a user may want to know, such as that only a software adapter is there. It lasts
 * for the call. The callback comes on the thread that uses the device, and calls nothing of it. */
typedef void (*ptero_log_callback)(void* user, const char* sentence);

typedef struct ptero_device ptero_device;

/* Options: adapter, disable, no-robustness, max-binding, max-buffer. `log` may be NULL; it is
 * called until the device and everything made from it are freed. */
ptero_status ptero_device_open(const ptero_options* options, ptero_log_callback log, void* user,
                               ptero_device** out);
void ptero_device_free(ptero_device* device);
/* The adapter's name; lasts as long as the device. */
const char* ptero_device_name(const ptero_device* device);

/* ---- models ---- */

/* How far something is. 0: go on; another number cancels. */
typedef int32_t (*ptero_progress_callback)(void* user, uint64_t done, uint64_t total);

/* A program on a device: weights, and tokenizer and chat template of a language model. Sessions
 * share it. */
typedef struct ptero_model ptero_model;

/* Loads a method of a .pte file: forward, unless option `method` names another. Options: data,
 * tokenizer, chat-template-file, method, ctx-size, and all keys of --option. `progress` counts
 * bytes on their way to the device, of about as many as the file has; it may be NULL. The file
 * stays as it is until the model is gone. PTERO_CANCELLED when `progress` says so. */
ptero_status ptero_model_load(ptero_device* device, const char* path, const ptero_options* options,
                              ptero_progress_callback progress, void* user, ptero_model** out);
void ptero_model_free(ptero_model* model);

/* 1: a language model, which the functions below take. 0: another program, for ptero_run(). */
int32_t ptero_model_is_language_model(const ptero_model* model);
int32_t ptero_model_has_tokenizer(const ptero_model* model);
int32_t ptero_model_has_chat_template(const ptero_model* model);
/* 0 when it is no language model. */
uint32_t ptero_model_vocabulary(const ptero_model* model);
uint32_t ptero_model_context(const ptero_model* model); /* tokens that a session holds at most */

/* Text to token ids. Writes at most `capacity` of them and to *count how many there are; with a
 * capacity of 0 `ids` may be NULL. add_special: 1 adds what the tokenizer puts around a text, such
 * as a begin token. */
ptero_status ptero_encode(const ptero_model* model, const char* text, int32_t add_special,
                          uint32_t* ids, size_t capacity, size_t* count);
/* Token ids to text, without a zero byte at its end; the same rule for `capacity`, in bytes.
 * skip_special: 1 leaves out tokens such as <|im_end|>. */
ptero_status ptero_decode(const ptero_model* model, const uint32_t* ids, size_t count,
                          int32_t skip_special, char* text, size_t capacity, size_t* size);

/* ---- sessions ---- */

/* One user of a model: its caches, and what they hold. */
typedef struct ptero_session ptero_session;

ptero_status ptero_session_create(ptero_model* model, ptero_session** out);
void ptero_session_free(ptero_session* session);
/* Tokens that the caches of a language model hold. */
size_t ptero_session_length(const ptero_session* session);
/* Forgets all but the first `length` of them. */
ptero_status ptero_session_rewind(ptero_session* session, size_t length);

/* Ends what the session is doing, if it is doing something: an answer ends with what there is,
 * ptero_run() returns PTERO_CANCELLED. From any thread and from callbacks. */
void ptero_cancel(ptero_session* session);

/* ---- running a method ---- */

/* Element types, numbered as in PyTorch. */
enum {
  PTERO_UINT8 = 0,
  PTERO_INT8 = 1,
  PTERO_INT16 = 2,
  PTERO_INT32 = 3,
  PTERO_INT64 = 4,
  PTERO_FLOAT16 = 5,
  PTERO_FLOAT32 = 6,
  PTERO_FLOAT64 = 7,
  PTERO_BOOL = 11 /* one byte, 0 or 1 */
};

/* Elements in host memory, dense, the last dimension fastest, in the byte order of the machine. */
typedef struct ptero_tensor ptero_tensor;

/* `rank` dimensions, at most 8. `data` is copied and has `size` bytes, which is what type and shape
 * take; NULL makes zeros and `size` is not looked at. */
ptero_status ptero_tensor_create(int32_t type, const int64_t* shape, size_t rank, const void* data,
                                 size_t size, ptero_tensor** out);
void ptero_tensor_free(ptero_tensor* tensor);
int32_t ptero_tensor_type(const ptero_tensor* tensor); /* -1 for NULL */
size_t ptero_tensor_rank(const ptero_tensor* tensor);
int64_t ptero_tensor_dimension(const ptero_tensor* tensor, size_t index); /* -1: no such one */
const void* ptero_tensor_data(const ptero_tensor* tensor); /* lasts as long as the tensor */
size_t ptero_tensor_size(const ptero_tensor* tensor);      /* bytes */

/* Runs the method and waits. `inputs` are in the method's order and types; an integer of a method
 * is an int64 tensor of rank 0. Caches keep what runs leave in them. A session of a language model
 * then counts as empty: the next answer starts from its whole prompt. */
ptero_status ptero_run(ptero_session* session, const ptero_tensor* const* inputs, size_t count);
size_t ptero_output_count(const ptero_session* session); /* of the last run */
/* NULL: there is no such one. Lasts until the next run of the session, and as long as the session;
 * do not free it. */
const ptero_tensor* ptero_output(const ptero_session* session, size_t index);

/* ---- language models ---- */

/* Called for each token of an answer. `text` are whole characters, `size` bytes without a zero
 * byte, often none while half a character is held back; it lasts for the call. 0: go on; another
 * number ends the answer. */
typedef int32_t (*ptero_token_callback)(void* user, uint32_t token, const char* text, size_t size);

/* A conversation: what the model's chat template makes a prompt of. */
typedef struct ptero_chat ptero_chat;

ptero_status ptero_chat_create(ptero_chat** out);
void ptero_chat_free(ptero_chat* chat);
/* `role`: "system", "user" or "assistant". */
ptero_status ptero_chat_add(ptero_chat* chat, const char* role, const char* content);
/* Forgets all but the first `count` messages. */
ptero_status ptero_chat_truncate(ptero_chat* chat, size_t count);

/* Answers, and returns at the end of the answer. The prompt is the whole history: what the session
 * holds of it already is not computed again. `on_prompt` counts the prompt's tokens; both callbacks
 * may be NULL, and both get `user`. Options: n-predict, temp, top-k, top-p, min-p, repeat-penalty,
 * repeat-last-n, frequency-penalty, presence-penalty, seed, logit-bias, reverse-prompt, ignore-eos;
 * for chats also chat-template-kwargs. A cancelled answer is PTERO_OK with
 * PTERO_REASON_CANCELLED. */
ptero_status ptero_answer_chat(ptero_session* session, const ptero_chat* chat,
                               const ptero_options* options, ptero_progress_callback on_prompt,
                               ptero_token_callback on_token, void* user);
/* The same for a text as it is, and for tokens. */
ptero_status ptero_answer_text(ptero_session* session, const char* text,
                               const ptero_options* options, ptero_progress_callback on_prompt,
                               ptero_token_callback on_token, void* user);
ptero_status ptero_answer_tokens(ptero_session* session, const uint32_t* ids, size_t count,
                                 const ptero_options* options, ptero_progress_callback on_prompt,
                                 ptero_token_callback on_token, void* user);

enum {
  PTERO_REASON_END = 0,     /* the model ended it */
  PTERO_REASON_STOP = 1,    /* a reverse-prompt came */
  PTERO_REASON_LENGTH = 2,  /* n-predict tokens */
  PTERO_REASON_CONTEXT = 3, /* the caches are full */
  PTERO_REASON_CANCELLED = 4
};

/* Of the session's last answer. Pointers last until its next answer, and as long as the session. */
int32_t ptero_last_reason(const ptero_session* session);
const char* ptero_last_text(const ptero_session* session);                      /* all of it */
const uint32_t* ptero_last_tokens(const ptero_session* session, size_t* count); /* count not NULL */
size_t ptero_last_prompt_tokens(const ptero_session* session);                  /* computed */
size_t ptero_last_reused_tokens(const ptero_session* session);  /* the session had them already */
double ptero_last_prompt_seconds(const ptero_session* session); /* until the first token */
double ptero_last_answer_seconds(const ptero_session* session); /* from then on */

#ifdef __cplusplus
}
#endif

#endif /* PTERO_H */
