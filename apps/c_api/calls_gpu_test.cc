// SPDX-License-Identifier: BSD-3-Clause
// Running methods, handles, threads and errors of the C functions.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "c_api/testing.h"

namespace ptero::c_api::testing {
namespace {

TEST_CASE("another call meanwhile is refused, and what is freed meanwhile goes later") {
  struct Meanwhile {
    ptero_session* session;
    ptero_session* other;
    std::atomic<int> calls = 0;
  } meanwhile{Session().release(), Session().release()};
  const Options options({{"temp", "0"}, {"n-predict", "8"}});
  const auto on_token = [](void* user, uint32_t, const char*, size_t) -> int32_t {
    auto& to = *static_cast<Meanwhile*>(user);
    if (to.calls++ == 0) {
      fail(ptero_session_rewind(to.session, 0), PTERO_BUSY, "Another call of this device");
      std::thread([&] {
        // The error is this thread's own.
        CHECK(std::string(ptero_last_error()).empty());
        fail(ptero_run(to.other, nullptr, 0), PTERO_BUSY, "Another call of this device");
        size_t count = 0;
        succeed(ptero_encode(shared_model(), "ab", 1, nullptr, 0, &count));
        ptero_session_free(to.other);
      }).join();
      ptero_session_free(to.session);  // the one that is answering
    }
    return 0;
  };
  succeed(ptero_answer_tokens(meanwhile.session, kPrompt.data(), kPrompt.size(), options, nullptr,
                              on_token, &meanwhile));
  CHECK(meanwhile.calls >= 8);
  CHECK(greedy(Session()).size() == 12);
}

TEST_CASE("handles go in any order, and two devices work in two threads") {
  const auto work = [] {
    ptero_device* device = nullptr;
    ptero_model* model = nullptr;
    ptero_session* session = nullptr;
    bool answered = ptero_device_open(nullptr, nullptr, nullptr, &device) == PTERO_OK &&
                    ptero_model_load(device, model_file().c_str(), nullptr, nullptr, nullptr,
                                     &model) == PTERO_OK &&
                    ptero_session_create(model, &session) == PTERO_OK;
    ptero_device_free(device);
    ptero_model_free(model);
    answered = answered && ptero_answer_tokens(session, kPrompt.data(), 4, nullptr, nullptr,
                                               nullptr, nullptr) == PTERO_OK;
    ptero_session_free(session);
    return answered;
  };
  bool there = false;
  std::thread other([&] { there = work(); });
  const bool here = work();
  other.join();
  CHECK(here);
  CHECK(there);
}

TEST_CASE("a method runs, with PyTorch's numbers") {
  const std::string models = std::string(PTERO_TESTDATA) + "/models/";
  ptero_model* model = nullptr;
  uint64_t bytes = 0;
  succeed(ptero_model_load(
      shared_device(), (models + "binary/add_alpha.pte").c_str(), nullptr,
      [](void* user, uint64_t done, uint64_t total) -> int32_t {
        CHECK(done <= total);
        *static_cast<uint64_t*>(user) = total - done;
        return 0;
      },
      &bytes, &model));
  CHECK(bytes == 0);
  CHECK(ptero_model_is_language_model(model) == 0);
  const Session session(model);
  const std::vector<char> a = bytes_of(models + "inputs/f32_5x7.0.bin");
  const std::vector<char> b = bytes_of(models + "inputs/f32_7.0.bin");
  const int64_t shape[] = {5, 7};
  ptero_tensor* inputs[2] = {};
  succeed(ptero_tensor_create(PTERO_FLOAT32, shape, 2, a.data(), a.size(), &inputs[0]));
  succeed(ptero_tensor_create(PTERO_FLOAT32, shape + 1, 1, b.data(), b.size(), &inputs[1]));
  for (int time = 0; time < 2; ++time) {
    succeed(ptero_run(session, inputs, 2));
    REQUIRE(ptero_output_count(session) == 2);
    for (size_t i = 0; i < 2; ++i) {
      const ptero_tensor* output = ptero_output(session, i);
      CHECK(ptero_tensor_type(output) == PTERO_FLOAT32);
      CHECK(ptero_tensor_rank(output) == 2);
      CHECK(ptero_tensor_dimension(output, 1) == 7);
      CHECK(ptero_tensor_dimension(output, 2) == -1);
      const std::vector<char> want =
          bytes_of(models + "binary/add_alpha.out" + std::to_string(i) + ".bin");
      REQUIRE(ptero_tensor_size(output) == want.size());
      for (size_t k = 0; k < 35; ++k) {
        float got = 0;
        float expected = 0;
        std::memcpy(&got, static_cast<const char*>(ptero_tensor_data(output)) + 4 * k, 4);
        std::memcpy(&expected, want.data() + 4 * k, 4);
        CHECK(got == doctest::Approx(expected).epsilon(1e-4));
      }
    }
  }
  CHECK(ptero_output(session, 2) == nullptr);
  fail(ptero_run(session, inputs, 1), PTERO_INVALID_ARGUMENT, "1");
  CHECK(ptero_output_count(session) == 0);
  fail(ptero_answer_text(session, "x", nullptr, nullptr, nullptr, nullptr), PTERO_UNSUPPORTED,
       "as a language model with a KV cache does");
  fail(ptero_encode(model, "x", 1, nullptr, 0, nullptr), PTERO_UNSUPPORTED, "language model");
  ptero_tensor_free(inputs[0]);
  ptero_tensor_free(inputs[1]);
  ptero_model_free(model);
}

TEST_CASE("a language model's method runs too, and its session starts over") {
  const Session session;
  const std::vector<uint32_t> whole = greedy(session);
  const int64_t one[] = {1, 1};
  const int64_t token = 5;
  const int64_t position = 0;
  ptero_tensor* inputs[2] = {};
  succeed(ptero_tensor_create(PTERO_INT64, one, 2, &token, 8, &inputs[0]));
  succeed(ptero_tensor_create(PTERO_INT64, one, 1, &position, 8, &inputs[1]));
  succeed(ptero_run(session, inputs, 2));
  CHECK(ptero_tensor_size(ptero_output(session, 0)) == 50 * 4);
  CHECK(ptero_session_length(session) == 0);
  CHECK(greedy(session) == whole);
  ptero_tensor_free(inputs[0]);
  ptero_tensor_free(inputs[1]);
}

TEST_CASE("bad files are refused in a sentence") {
  ptero_model* model = nullptr;
  const auto load = [&](const std::string& path, ptero_options* options = nullptr) {
    return ptero_model_load(shared_device(), path.c_str(), options, nullptr, nullptr, &model);
  };
  fail(load(folder().file("none.pte")), PTERO_IO, "none.pte");
  const std::vector<char> whole = bytes_of(model_file());
  const std::string cut =
      folder().write("cut.pte", std::string(whole.begin(), whole.begin() + 2000));
  fail(load(cut), PTERO_INVALID_PROGRAM, "while loading");
  CHECK(std::string(ptero_last_error()).find(cut) != std::string::npos);
  fail(load(folder().write("empty.pte", "")), PTERO_INVALID_PROGRAM, "empty.pte");
  fail(load(model_file(), Options({{"method", "backward"}})), PTERO_INVALID_ARGUMENT, "backward");
  fail(load(model_file(), Options({{"tokenizer", folder().file("none")}})), PTERO_IO, "none");
  fail(load(model_file(), Options({{"tokenizer", folder().write("junk", "junk")}})),
       PTERO_INVALID_PROGRAM, "while reading the tokenizer");
  CHECK(model == nullptr);

  // Without a tokenizer tokens go in and out.
  succeed(load(model_file()));
  CHECK(ptero_model_is_language_model(model) == 1);
  CHECK(ptero_model_has_tokenizer(model) == 0);
  CHECK(ptero_model_has_chat_template(model) == 0);
  CHECK(ptero_model_vocabulary(model) == 50);
  CHECK(ptero_model_context(model) == 48);
  {
    const Session session(model);
    CHECK(greedy(session).size() == 12);
    CHECK(std::string(ptero_last_text(session)).empty());
    fail(ptero_answer_text(session, "x", nullptr, nullptr, nullptr, nullptr), PTERO_UNSUPPORTED,
         "tokenizer");
    const uint32_t wrong = 50;
    fail(ptero_answer_tokens(session, &wrong, 1, nullptr, nullptr, nullptr, nullptr),
         PTERO_INVALID_ARGUMENT, "Token 50 lies outside");
    const std::vector<uint32_t> full(48, 1);
    fail(ptero_answer_tokens(session, full.data(), full.size(), nullptr, nullptr, nullptr, nullptr),
         PTERO_INVALID_ARGUMENT, "leave no room in the model's context of 48");
  }
  ptero_model_free(model);
}

TEST_CASE("NULL and handles of another kind are errors") {
  ptero_options* options = nullptr;
  succeed(ptero_options_create(&options));
  auto* const wrong = reinterpret_cast<ptero_model*>(options);
  ptero_session* session = nullptr;
  fail(ptero_session_create(wrong, &session), PTERO_INVALID_ARGUMENT, "given as a model");
  fail(ptero_session_create(nullptr, &session), PTERO_INVALID_ARGUMENT, "The model is NULL.");
  fail(ptero_session_create(shared_model(), nullptr), PTERO_INVALID_ARGUMENT, "(out) is NULL");
  fail(ptero_run(nullptr, nullptr, 0), PTERO_INVALID_ARGUMENT, "The session is NULL.");
  fail(ptero_run(Session(), nullptr, 2), PTERO_INVALID_ARGUMENT, "(inputs) is NULL");
  const ptero_tensor* const none[] = {nullptr};
  fail(ptero_run(Session(), none, 1), PTERO_INVALID_ARGUMENT, "The tensor is NULL. / in input 0");
  fail(ptero_device_open(nullptr, nullptr, nullptr, nullptr), PTERO_INVALID_ARGUMENT, "(out)");
  fail(ptero_model_load(nullptr, "x", nullptr, nullptr, nullptr, nullptr), PTERO_INVALID_ARGUMENT,
       "The device is NULL.");
  fail(ptero_model_load(shared_device(), nullptr, nullptr, nullptr, nullptr, nullptr),
       PTERO_INVALID_ARGUMENT, "(path)");
  fail(ptero_answer_chat(Session(), nullptr, nullptr, nullptr, nullptr, nullptr),
       PTERO_INVALID_ARGUMENT, "The chat is NULL.");
  fail(ptero_answer_text(Session(), nullptr, nullptr, nullptr, nullptr, nullptr),
       PTERO_INVALID_ARGUMENT, "(text)");
  fail(ptero_answer_tokens(Session(), nullptr, 1, nullptr, nullptr, nullptr, nullptr),
       PTERO_INVALID_ARGUMENT, "(ids)");
  fail(ptero_list_adapters(nullptr, nullptr), PTERO_INVALID_ARGUMENT, "(each)");
  fail(ptero_chat_add(nullptr, "user", "x"), PTERO_INVALID_ARGUMENT, "The chat is NULL.");
  const int64_t shape[] = {2, -1};
  ptero_tensor* tensor = nullptr;
  fail(ptero_tensor_create(PTERO_INT8, shape, 2, nullptr, 0, &tensor), PTERO_INVALID_ARGUMENT,
       "Dimension 1 (-1)");
  fail(ptero_tensor_create(PTERO_INT8, shape, 1, "abc", 3, &tensor), PTERO_INVALID_ARGUMENT,
       "3 bytes");
  fail(ptero_tensor_create(99, shape, 1, nullptr, 0, &tensor), PTERO_INVALID_ARGUMENT, "(99)");
  fail(ptero_tensor_create(PTERO_INT8, shape, 9, nullptr, 0, &tensor), PTERO_INVALID_ARGUMENT,
       "Rank (9)");
  CHECK(tensor == nullptr);

  CHECK(ptero_output(nullptr, 0) == nullptr);
  CHECK(ptero_tensor_data(nullptr) == nullptr);
  CHECK(ptero_model_vocabulary(wrong) == 0);
  CHECK(std::string(ptero_last_text(nullptr)).empty());
  CHECK(ptero_last_tokens(nullptr, nullptr) == nullptr);
  ptero_cancel(nullptr);
  ptero_session_free(nullptr);
  ptero_model_free(wrong);  // another kind: nothing happens
  succeed(ptero_options_set(options, "temp", "0"));
  ptero_options_free(options);
  ptero_options_free(nullptr);
}

TEST_CASE("options are those of the command line, and wrong ones are named") {
  const Options options({{"q4_gemm", "tile"},
                         {"enable_f16_kv_cache", "true"},
                         {"seed", "-1"},
                         {"disable", "subgroups,shader-f16"},
                         {"logit-bias", "3-inf"}});
  fail(ptero_options_set(options, "temperature", "1"), PTERO_INVALID_ARGUMENT, "top-k");
  CHECK(std::string(ptero_last_error()).find("sdpa_route") != std::string::npos);
  fail(ptero_options_set(options, "top-p", "2"), PTERO_INVALID_ARGUMENT, "between 0 and 1");
  fail(ptero_options_set(options, "top-k", "-1"), PTERO_INVALID_ARGUMENT, "(-1)");
  fail(ptero_options_set(options, "q4_gemm", "fast"), PTERO_INVALID_ARGUMENT, "(fast)");
  fail(ptero_options_set(options, "disable", "warp"), PTERO_INVALID_ARGUMENT, "(warp)");
  fail(ptero_options_set(options, "n-predict", "0"), PTERO_INVALID_ARGUMENT, "(0)");
  fail(ptero_options_set(options, "ignore-eos", "yes"), PTERO_INVALID_ARGUMENT, "(yes)");
  fail(ptero_options_set(options, nullptr, "1"), PTERO_INVALID_ARGUMENT, "(key)");
  const std::string help = ptero_options_help();
  CHECK(help.find("top-k: ") != std::string::npos);
  CHECK(help.find("q4_gemm") != std::string::npos);

  ptero_device* device = nullptr;
  fail(ptero_device_open(Options({{"adapter", "nobody"}}), nullptr, nullptr, &device),
       PTERO_INVALID_ARGUMENT, "(nobody)");
  std::string heard;
  const auto hear = [](void* user, const char* sentence) {
    *static_cast<std::string*>(user) += sentence;
  };
  succeed(ptero_device_open(options, hear, &heard, &device));
  const std::string adapter = ptero_device_name(device);
  const bool software = adapter.find("llvmpipe") != std::string::npos ||
                        adapter.find("SwiftShader") != std::string::npos;
  CHECK((heard.find("software adapter") != std::string::npos) == software);
  ptero_model* model = nullptr;
  succeed(ptero_model_load(device, model_file().c_str(), options, nullptr, nullptr, &model));
  CHECK(heard.find("enable_f16_kv_cache") != std::string::npos);
  ptero_model_free(model);
  ptero_device_free(device);

  size_t adapters = 0;
  succeed(ptero_list_adapters(
      [](void* user, size_t index, const char* name, const char*, const char* type) {
        CHECK(index == (*static_cast<size_t*>(user))++);
        CHECK(std::strlen(name) > 0);
        CHECK(std::strlen(type) > 0);
      },
      &adapters));
  CHECK(adapters > 0);
  CHECK(std::string(ptero_version()).find('.') != std::string::npos);
}

}  // namespace
}  // namespace ptero::c_api::testing
