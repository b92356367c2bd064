// SPDX-License-Identifier: BSD-3-Clause
// Errors are values. Result<T> holds either a T or an Error; Status is Result<void>. Nothing in
// Ptero's libraries throws, aborts on input or prints: a failure travels up through these types
// and each layer may add one line of context ("while ...") on the way.
//
// A message is one full sentence in the present tense that says what is wrong, with the value in
// parentheses after its name and the limit beside it.
#pragma once

#include <cassert>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

namespace ptero {

// Each code has one defined reaction: error_code_info() maps it to a name and a CLI exit status.
enum class ErrorCode {
  invalid_program,   // the file is wrong; another file may work
  invalid_argument,  // the caller or the command line is wrong
  unsupported,       // valid, but this build, model or adapter cannot do it
  io,                // a file or stream cannot be opened, read or written
  out_of_memory,     // host or device memory, or a configured cap
  device_lost,       // the GPU is gone; make a new Device
  timeout,           // a bounded wait ran out; the operation may still finish later
  cancelled,         // the caller asked to stop
  internal,          // our own invariant or an unexpected GPU validation error
};

struct ErrorCodeInfo {
  std::string_view name;  // stable, snake_case, for JSON and logs
  int exit_status;        // for command-line front ends; never 0
};
ErrorCodeInfo error_code_info(ErrorCode code);

class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // Innermost first.
  const std::vector<std::string>& context() const { return context_; }

  Error& add_context(std::string line) {
    context_.push_back(std::move(line));
    return *this;
  }

  // "Sentence. / while inner / while outer" on one line, for logs and tests.
  std::string to_string() const;

 private:
  ErrorCode code_;
  std::string message_;
  std::vector<std::string> context_;
};

template <typename... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error(code, fmt::format(format, std::forward<Args>(args)...));
}

template <typename T>
class [[nodiscard]] Result {
  static_assert(!std::is_same_v<std::remove_cvref_t<T>, Error>);

 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Precondition: ok().
  T& value() & {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    assert(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Precondition: !ok().
  const Error& error() const& {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    assert(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return error_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Precondition: !ok().
  const Error& error() const& {
    assert(!ok());
    return *std::get_if<1>(&error_);
  }
  Error&& error() && {
    assert(!ok());
    return std::move(*std::get_if<1>(&error_));
  }

 private:
  std::variant<std::monostate, Error> error_;
};

using Status = Result<void>;
inline Status ok_status() {
  return {};
}

namespace detail {
inline Error with_context(Error&& error) {
  return std::move(error);
}
template <typename... Args>
Error with_context(Error&& error, fmt::format_string<Args...> format, Args&&... args) {
  error.add_context(fmt::format(format, std::forward<Args>(args)...));
  return std::move(error);
}
}  // namespace detail

}  // namespace ptero

#define PTERO_CONCAT_INNER(a, b) a##b
#define PTERO_CONCAT(a, b) PTERO_CONCAT_INNER(a, b)

// PTERO_RETURN_IF_ERROR(expr [, "while doing {}", x]): context is formatted only on failure.
#define PTERO_RETURN_IF_ERROR(expr, ...)                               \
  do {                                                                 \
    if (auto ptero_status = (expr); !ptero_status.ok()) {              \
      return ::ptero::detail::with_context(                            \
          std::move(ptero_status).error() __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                  \
  } while (false)

// PTERO_ASSIGN_OR_RETURN(auto x, expr [, "while doing {}", y]);
#define PTERO_ASSIGN_OR_RETURN(decl, expr, ...) \
  PTERO_ASSIGN_OR_RETURN_INNER(PTERO_CONCAT(ptero_result_, __LINE__), decl, expr, __VA_ARGS__)
#define PTERO_ASSIGN_OR_RETURN_INNER(tmp, decl, expr, ...)                                   \
  auto tmp = (expr);                                                                         \
  if (!tmp.ok()) {                                                                           \
    return ::ptero::detail::with_context(std::move(tmp).error() __VA_OPT__(, ) __VA_ARGS__); \
  }                                                                                          \
  decl = std::move(tmp).value()

// PTERO_REJECT_IF(size > cap, invalid_program, "Size ({}) of {} exceeds the limit ({}).", ...);
#define PTERO_REJECT_IF(condition, code, ...)                            \
  do {                                                                   \
    if (condition) {                                                     \
      return ::ptero::make_error(::ptero::ErrorCode::code, __VA_ARGS__); \
    }                                                                    \
  } while (false)
