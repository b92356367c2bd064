// SPDX-License-Identifier: BSD-3-Clause
#include "llm/session.h"

#include <cstring>
#include <utility>

namespace ptero::llm {
namespace {

constexpr uint32_t kMagic = 0x53534c50;  // "PLSS"
constexpr uint32_t kVersion = 1;

struct Header {
  uint32_t magic = kMagic;
  uint32_t version = kVersion;
  uint64_t tokens = 0;
  uint64_t caches = 0;       // buffers
  uint64_t cache_bytes = 0;  // together
};

// Reads the caches back and puts the header and the tokens before them.
class Save : public gpu::Pending<std::vector<std::byte>> {
 public:
  Save(std::vector<std::byte> head, std::unique_ptr<gpu::Pending<gpu::ReadData>> read)
      : bytes_(std::move(head)), read_(std::move(read)) {}
  gpu::WaitTarget wait_target() const override { return read_->wait_target(); }

 private:
  bool poll() override {
    if (!read_->advance()) {
      return false;
    }
    Result<gpu::ReadData> data = read_->take();
    if (!data.ok()) {
      return finish(std::move(data).error());
    }
    for (const std::vector<std::byte>& cache : *data) {
      bytes_.insert(bytes_.end(), cache.begin(), cache.end());
    }
    return finish(std::move(bytes_));
  }

  std::vector<std::byte> bytes_;
  std::unique_ptr<gpu::Pending<gpu::ReadData>> read_;
};

}  // namespace

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Model> model,
                                                 graph::SessionOptions options) {
  std::unique_ptr<Session> session(new Session(std::move(model)));
  const Model& from = *session->model_;
  PTERO_ASSIGN_OR_RETURN(session->method_, graph::MethodSession::create(from.method(), options));
  if (from.sampler()) {
    const Metadata& metadata = from.metadata();
    const uint32_t rows = metadata.all_logits ? metadata.max_tokens : 1;
    const bool half = from.sampler()->key().features.contains(gpu::Feature::shader_f16);
    PTERO_ASSIGN_OR_RETURN(session->sampler_,
                           DeviceSampler::create(from.device(), *from.sampler(), rows,
                                                 metadata.vocab_size, half ? 2 : 4));
  }
  return session;
}

Status Session::rewind(size_t count) {
  PTERO_REJECT_IF(count > tokens_.size(), invalid_argument,
                  "The session holds {} tokens and cannot go back to {}.", tokens_.size(), count);
  tokens_.resize(count);
  return ok_status();
}

Result<std::unique_ptr<Session>> Session::fork() {
  PTERO_ASSIGN_OR_RETURN(std::unique_ptr<Session> other, create(model_));
  const std::vector<const gpu::Buffer*> from = method_->caches();
  const std::vector<const gpu::Buffer*> to = other->method_->caches();
  gpu::Step copies;
  for (size_t i = 0; i < from.size(); ++i) {
    PTERO_RETURN_IF_ERROR(copies.copy(*from[i], 0, *to[i], 0, graph::whole_words(from[i]->size())));
  }
  if (copies.size() > 0) {
    gpu::Device device = model_->device();
    PTERO_RETURN_IF_ERROR(device.submit(copies));
  }
  other->tokens_ = tokens_;
  return other;
}

Result<std::unique_ptr<gpu::Pending<std::vector<std::byte>>>> Session::save() {
  const std::vector<const gpu::Buffer*> caches = method_->caches();
  Header header;
  header.tokens = tokens_.size();
  header.caches = caches.size();
  std::vector<gpu::ReadRange> ranges;
  for (const gpu::Buffer* cache : caches) {
    header.cache_bytes += cache->size();
    ranges.push_back({cache, 0, cache->size()});
  }
  std::vector<std::byte> head(sizeof(Header) + tokens_.size() * sizeof(uint32_t));
  std::memcpy(head.data(), &header, sizeof(Header));
  if (!tokens_.empty()) {
    std::memcpy(head.data() + sizeof(Header), tokens_.data(), tokens_.size() * sizeof(uint32_t));
  }
  gpu::Device device = model_->device();
  PTERO_ASSIGN_OR_RETURN(auto read, device.submit_and_read(nullptr, ranges));
  return std::unique_ptr<gpu::Pending<std::vector<std::byte>>>(
      std::make_unique<Save>(std::move(head), std::move(read)));
}

Status Session::restore(std::span<const std::byte> bytes) {
  const std::vector<const gpu::Buffer*> caches = method_->caches();
  uint64_t cache_bytes = 0;
  for (const gpu::Buffer* cache : caches) {
    cache_bytes += cache->size();
  }
  Header header;
  PTERO_REJECT_IF(bytes.size() < sizeof(Header), invalid_argument,
                  "A saved session has at least {} bytes, and this has {}.", sizeof(Header),
                  bytes.size());
  std::memcpy(&header, bytes.data(), sizeof(Header));
  PTERO_REJECT_IF(header.magic != kMagic || header.version != kVersion, invalid_argument,
                  "This is not a session that this version of Ptero saved.");
  PTERO_REJECT_IF(header.caches != caches.size() || header.cache_bytes != cache_bytes,
                  invalid_argument,
                  "The saved session is of another model: {} caches of {} bytes and not {} of {}.",
                  header.caches, header.cache_bytes, caches.size(), cache_bytes);
  PTERO_REJECT_IF(
      header.tokens > model_->metadata().max_context ||
          bytes.size() != sizeof(Header) + header.tokens * sizeof(uint32_t) + cache_bytes,
      invalid_argument, "The saved session is truncated, or has {} tokens too many.",
      header.tokens);
  std::vector<uint32_t> tokens(header.tokens);
  if (!tokens.empty()) {
    std::memcpy(tokens.data(), bytes.data() + sizeof(Header), tokens.size() * sizeof(uint32_t));
  }
  uint64_t at = sizeof(Header) + tokens.size() * sizeof(uint32_t);
  gpu::Device device = model_->device();
  tokens_.clear();  // whatever happens below, the old past is gone
  for (const gpu::Buffer* cache : caches) {
    PTERO_RETURN_IF_ERROR(device.write(*cache, 0, bytes.subspan(at, cache->size())));
    at += cache->size();
  }
  tokens_ = std::move(tokens);
  return ok_status();
}

}  // namespace ptero::llm
