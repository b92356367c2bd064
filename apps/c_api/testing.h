// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the C functions share: a device, a small language model, handles that free
// themselves.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/file_output.h"
#include "convert/convert.h"
#include "convert/test_model.h"
#include "gguf/reader.h"
#include "pte/program_writer.h"
#include "ptero.h"

namespace ptero::c_api::testing {

namespace fs = std::filesystem;

inline void succeed(ptero_status status) {
  REQUIRE_MESSAGE(status == PTERO_OK, ptero_last_error());
}

// A failed call, its code and a part of its sentence.
inline void fail(ptero_status status, ptero_status wanted, const char* part) {
  const std::string sentence = ptero_last_error();
  CHECK(status == wanted);
  CHECK_MESSAGE(sentence.find(part) != std::string::npos, sentence);
}

// The device of the adapter that the test is for.
inline ptero_device* shared_device() {
  static ptero_device* const device = [] {
    ptero_device* opened = nullptr;
    succeed(ptero_device_open(nullptr, nullptr, nullptr, &opened));
    const char* wanted = std::getenv("PTERO_TEST_ADAPTER");
    REQUIRE(wanted != nullptr);
    const std::string name = ptero_device_name(opened);
    std::printf("adapter: %s\n", name.c_str());
    REQUIRE(name.find(std::strcmp(wanted, "lavapipe") == 0      ? "llvmpipe"
                      : std::strcmp(wanted, "swiftshader") == 0 ? "SwiftShader"
                      : std::strcmp(wanted, "any") == 0         ? ""
                                                                : "?") != std::string::npos);
    return opened;
  }();
  return device;
}

// A folder of this run with a small language model in it.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("ptero_c_api_" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return file(name);
  }

 private:
  fs::path path_;
};

inline const Folder& folder() {
  static const Folder made;
  return made;
}

inline const std::string& model_file() {
  static const std::string path = [] {
    ptero::convert::test::TestModel model;
    model.tied = false;  // or a token would call for itself
    model.make();
    const auto file = ptero::gguf::read_gguf(model.file.range());
    REQUIRE(file.ok());
    const auto converted = ptero::convert::convert_gguf(*file, {.context = 48, .max_seq = 9});
    REQUIRE(converted.ok());
    const auto bytes = ptero::pte::assemble_program(converted->program);
    REQUIRE(bytes.ok());
    std::string made = folder().file("model.pte");
    REQUIRE(ptero::write_file(made, **bytes).ok());
    return made;
  }();
  return path;
}

// 50 tokens, one byte each: small letters, a space and a line end, and the two halves of an e with
// an acute accent, which end up beside each other or alone.
inline const std::string& tokenizer_file() {
  static const std::string path = [] {
    std::string vocabulary;
    for (int i = 0; i < 50; ++i) {
      const std::string token = i < 26    ? std::string(1, static_cast<char>('a' + i))
                                : i == 26 ? "\u0120"
                                : i == 27 ? "\u010a"
                                : i < 39  ? "\u00c3"
                                          : "\u00a9";
      vocabulary += (i > 0 ? ",\"" : "\"") + token +
                    (i >= 28 && i != 28 && i != 39 ? std::to_string(i) : "") +
                    "\":" + std::to_string(i);
    }
    return folder().write("tokenizer.json",
                          "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,"
                          "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                          "\"use_regex\":true},\"post_processor\":null,"
                          "\"decoder\":{\"type\":\"ByteLevel\"},"
                          "\"model\":{\"type\":\"BPE\",\"vocab\":{" +
                              vocabulary + "},\"merges\":[]}}");
  }();
  return path;
}

class Options {
 public:
  Options(std::initializer_list<std::pair<const char*, std::string>> values) {
    succeed(ptero_options_create(&options_));
    for (const auto& [key, value] : values) {
      succeed(ptero_options_set(options_, key, value.c_str()));
    }
  }
  ~Options() { ptero_options_free(options_); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  operator ptero_options*() const { return options_; }

 private:
  ptero_options* options_ = nullptr;
};

inline ptero_model* shared_model() {
  static ptero_model* const model = [] {
    const Options options(
        {{"tokenizer", tokenizer_file()},
         {"chat-template-file",
          folder().write("template.jinja",
                         "{% for m in messages %}{{ m.content }}\n{% endfor %}")}});
    ptero_model* loaded = nullptr;
    succeed(ptero_model_load(shared_device(), model_file().c_str(), options, nullptr, nullptr,
                             &loaded));
    return loaded;
  }();
  return model;
}

class Session {
 public:
  explicit Session(ptero_model* model = shared_model()) {
    succeed(ptero_session_create(model, &session_));
  }
  ~Session() { ptero_session_free(session_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  operator ptero_session*() const { return session_; }
  ptero_session* release() { return std::exchange(session_, nullptr); }

  std::vector<uint32_t> tokens() const {
    size_t count = 0;
    const uint32_t* ids = ptero_last_tokens(session_, &count);
    return {ids, ids + count};
  }

 private:
  ptero_session* session_ = nullptr;
};

inline const std::vector<uint32_t> kPrompt = {5, 9, 17, 3, 40, 12, 8, 1, 33, 42, 31};

inline std::vector<uint32_t> greedy(const Session& session, const char* count = "12") {
  const Options options({{"temp", "0"}, {"n-predict", count}});
  succeed(ptero_answer_tokens(session, kPrompt.data(), kPrompt.size(), options, nullptr, nullptr,
                              nullptr));
  return session.tokens();
}

inline std::vector<char> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace ptero::c_api::testing
