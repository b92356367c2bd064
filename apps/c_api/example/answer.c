/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lets a language model answer one message, piece by piece as it comes:
 *
 *   answer MODEL.pte MESSAGE [KEY=VALUE ...]
 *
 * Built by itself:  cc -std=c11 answer.c -lptero -o answer
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "ptero.h"

static volatile sig_atomic_t interrupted = 0;

static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
}

static void on_log(void* user, const char* sentence) {
  (void)user;
  fprintf(stderr, "%s\n", sentence);
}

static int32_t on_load(void* user, uint64_t done, uint64_t total) {
  (void)user;
  fprintf(stderr, "\rloading: %3" PRIu64 " %%", total > 0 ? done * 100 / total : 100);
  return interrupted;
}

static int32_t on_token(void* user, uint32_t token, const char* text, size_t size) {
  (void)user;
  (void)token;
  fwrite(text, 1, size, stdout);
  /* A pipe that the other side closed ends the answer too. */
  return fflush(stdout) != 0 || interrupted;
}

/* "temp=0" */
static ptero_status set_option(ptero_options* options, const char* assignment) {
  char key[64];
  const char* sign = strchr(assignment, '=');
  const size_t length = sign == NULL ? 0 : (size_t)(sign - assignment);
  if (length == 0 || length >= sizeof key) {
    fprintf(stderr, "%s is not KEY=VALUE. There are:\n%s", assignment, ptero_options_help());
    return PTERO_INVALID_ARGUMENT;
  }
  memcpy(key, assignment, length);
  key[length] = '\0';
  return ptero_options_set(options, key, sign + 1);
}

int main(int argc, char** argv) {
  ptero_options* options = NULL;
  ptero_device* device = NULL;
  ptero_model* model = NULL;
  ptero_session* session = NULL;
  ptero_chat* chat = NULL;
  ptero_status status;
  int i;

  if (argc < 3) {
    fprintf(stderr, "usage: answer MODEL.pte MESSAGE [KEY=VALUE ...]\n");
    return PTERO_INVALID_ARGUMENT;
  }
  signal(SIGINT, on_interrupt);

  status = ptero_options_create(&options);
  for (i = 3; status == PTERO_OK && i < argc; ++i) {
    status = set_option(options, argv[i]);
  }
  if (status == PTERO_OK) {
    status = ptero_device_open(options, on_log, NULL, &device);
  }
  if (status == PTERO_OK) {
    status = ptero_model_load(device, argv[1], options, on_load, NULL, &model);
    fprintf(stderr, "\n");
  }
  if (status == PTERO_OK) {
    status = ptero_session_create(model, &session);
  }
  if (status == PTERO_OK) {
    status = ptero_chat_create(&chat);
  }
  if (status == PTERO_OK) {
    status = ptero_chat_add(chat, "user", argv[2]);
  }
  if (status == PTERO_OK) {
    status = ptero_answer_chat(session, chat, options, NULL, on_token, NULL);
  }
  if (status == PTERO_OK) {
    size_t count = 0;
    (void)ptero_last_tokens(session, &count);
    printf("\n");
    fprintf(stderr, "%zu tokens of prompt in %.2f s, %zu of answer in %.2f s more\n",
            ptero_last_prompt_tokens(session), ptero_last_prompt_seconds(session), count,
            ptero_last_answer_seconds(session));
  } else {
    fprintf(stderr, "%s\n", ptero_last_error());
  }

  ptero_chat_free(chat);
  ptero_session_free(session);
  ptero_model_free(model);
  ptero_device_free(device);
  ptero_options_free(options);
  return status;
}
