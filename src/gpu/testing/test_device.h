// SPDX-License-Identifier: BSD-3-Clause
// What the GPU tests of every layer share: the adapter under test, devices on it, and short ways to
// move values in and out. A helper that fails ends the test case and names the line that called it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpu/device.h"
#include "gpu/native/wait.h"
#include "gpu/step.h"

namespace ptero::gpu::testing {

using Where = std::source_location;

[[noreturn]] void fail_at(const Where& where, const std::string& why);

// The value of something that has to succeed, waiting for it if need be.
template <typename T>
T must(Result<T> result, Where where = Where::current()) {
  if (!result.ok()) {
    fail_at(where, result.error().to_string());
  }
  if constexpr (!std::is_void_v<T>) {
    return std::move(result).value();
  }
}
template <typename T>
T must(std::unique_ptr<Pending<T>> operation, Where where = Where::current()) {
  return must(wait_for(*operation), where);
}
template <typename T>
T must(Result<std::unique_ptr<Pending<T>>> operation, Where where = Where::current()) {
  return must(wait_for(std::move(operation)), where);
}

// An operation that has to start, and is waited for later or never.
template <typename T>
std::unique_ptr<Pending<T>> started(Result<std::unique_ptr<Pending<T>>> operation,
                                    Where where = Where::current()) {
  if (!operation.ok()) {
    fail_at(where, operation.error().to_string());
  }
  return std::move(operation).value();
}

// Checks that something fails with this code, in a sentence with these parts in it.
void check_error(const Error* error, ErrorCode code, std::initializer_list<std::string_view> parts,
                 const Where& where);
template <typename T>
void expect_error(const Result<T>& result, ErrorCode code,
                  std::initializer_list<std::string_view> parts, Where where = Where::current()) {
  check_error(result.ok() ? nullptr : &result.error(), code, parts, where);
}
template <typename T>
void expect_error(std::unique_ptr<Pending<T>> operation, ErrorCode code,
                  std::initializer_list<std::string_view> parts, Where where = Where::current()) {
  expect_error(wait_for(*operation), code, parts, where);
}
template <typename T>
void expect_error(Result<std::unique_ptr<Pending<T>>> operation, ErrorCode code,
                  std::initializer_list<std::string_view> parts, Where where = Where::current()) {
  expect_error(wait_for(std::move(operation)), code, parts, where);
}

// The adapter that the environment variable PTERO_TEST_ADAPTER names: lavapipe, swiftshader, or any
// for whichever is chosen by default. Another one, none, or no such variable fails the test: a test
// that ran elsewhere proves nothing. Prints once which it is.
const Adapter& test_adapter();
bool on_lavapipe();
bool on_swiftshader();

Device open_device(DeviceOptions options = {}, Where where = Where::current());

Kernel prepare(Device& device, const KernelSource& source, Where where = Where::current());
BindGroup bind(Device& device, const Kernel& kernel, std::initializer_list<Binding> bindings,
               Where where = Where::current());
Buffer make_buffer(Device& device, std::string label, uint64_t bytes,
                   Where where = Where::current());

template <typename T>
Buffer upload(Device& device, std::string label, const std::vector<T>& values,
              Where where = Where::current()) {
  Buffer buffer = make_buffer(device, std::move(label), values.size() * sizeof(T), where);
  must(device.write(buffer, 0, std::as_bytes(std::span(values))), where);
  return buffer;
}

template <typename T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}
template <typename T>
std::vector<T> download(Device& device, const Buffer& buffer, Where where = Where::current()) {
  return values_of<T>(must(device.read(buffer, 0, buffer.size()), where).front());
}

// One invocation an element in workgroups of 64, folded over y where x does not suffice.
Grid grid_for(const Limits& limits, uint64_t elements);

// Per element: |got - want| <= tolerance * max(1, |want|). 0 asks for equality.
void check_near(const std::vector<float>& got, const std::vector<double>& want, double tolerance,
                Where where = Where::current());

// A small job that passes every place where a device can fail: three buffers, two kernels compiled
// at once, two submits, a readback. Errors come back as they are.
Result<std::vector<float>> run_workload(Device& device,
                                        std::chrono::milliseconds timeout = kDefaultTimeout);
std::vector<double> workload_golden();

}  // namespace ptero::gpu::testing
