// SPDX-License-Identifier: BSD-3-Clause
// A conversation: the KV caches of one user and the tokens that they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "graph/method.h"
#include "llm/device_sampler.h"
#include "llm/model.h"

namespace ptero::llm {

// Threads: as the device. One generation at a time.
class Session {
 public:
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Model> model,
                                                 graph::SessionOptions options = {});

  const std::shared_ptr<const Model>& model() const { return model_; }
  // In the caches, in order; its size is the next position.
  const std::vector<uint32_t>& tokens() const { return tokens_; }
  // Forgets what comes after so many tokens. invalid_argument when there are fewer.
  Status rewind(size_t count);
  // Another session with the same past. The caches are copied on the device.
  Result<std::unique_ptr<Session>> fork();

  // The past as bytes, for a session of the same model in this or another process.
  Result<std::unique_ptr<gpu::Pending<std::vector<std::byte>>>> save();
  // invalid_argument, and nothing changes, for bytes of another model or truncated ones.
  Status restore(std::span<const std::byte> bytes);

  graph::MethodSession& method() { return *method_; }
  // Null when tokens are picked on the host.
  DeviceSampler* sampler() { return sampler_ ? &*sampler_ : nullptr; }

 private:
  friend class Generation;
  explicit Session(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  std::shared_ptr<const Model> model_;
  std::unique_ptr<graph::MethodSession> method_;
  std::optional<DeviceSampler> sampler_;
  std::vector<uint32_t> tokens_;
};

}  // namespace ptero::llm
