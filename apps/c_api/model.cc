// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>

#include "c_api/handles.h"
#include "gpu/native/wait.h"
#include "ops/all_operators.h"
#include "ops/host_operators.h"
#include "passes/passes.h"
#include "pte/flat_tensor_reader.h"
#include "pte/program_reader.h"

namespace ptero::c_api {
namespace {

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  PTERO_REJECT_IF(!file, io, "File ({}) cannot be read.", path);
  PTERO_REJECT_IF(text.empty(), invalid_argument, "File ({}) is empty.", path);
  return text;
}

class Progress {
 public:
  Progress(ptero_progress_callback callback, void* user, const gpu::Device& device, uint64_t total)
      : callback_(callback),
        user_(user),
        device_(device),
        total_(total),
        before_(device.stats().bytes_written) {}

  // False cancels.
  bool report(bool done) const {
    const uint64_t written = device_.stats().bytes_written - before_;
    return callback_ == nullptr ||
           callback_(user_, done ? total_ : std::min(written, total_), total_) == 0;
  }

 private:
  ptero_progress_callback callback_;
  void* user_;
  const gpu::Device& device_;
  uint64_t total_;
  uint64_t before_;
};

template <typename T>
Result<T> wait_with(std::unique_ptr<gpu::Pending<T>> operation, const Progress& progress) {
  constexpr std::string_view kCancelled = "Loading was cancelled.";
  PTERO_RETURN_IF_ERROR(
      gpu::wait_while(*operation, [&progress] { return progress.report(false); }, kCancelled));
  Result<T> result = operation->take();
  if (result.ok()) {
    PTERO_REJECT_IF(!progress.report(true), cancelled, "{}", kCancelled);
  }
  return result;
}

Status open_program(ModelState& state, const std::string& path,
                    const std::vector<std::string>& data, uint64_t& bytes) {
  PTERO_ASSIGN_OR_RETURN(ByteSourcePtr source, map_file(path));
  bytes = source->size();
  PTERO_ASSIGN_OR_RETURN(state.program, pte::read_program(ByteRange::whole(std::move(source))));
  PTERO_RETURN_IF_ERROR(state.data.add(state.program));
  for (const std::string& data_path : data) {
    PTERO_ASSIGN_OR_RETURN(ByteSourcePtr data_source, map_file(data_path));
    bytes += data_source->size();
    PTERO_ASSIGN_OR_RETURN(const pte::FlatTensor tensors,
                           pte::read_flat_tensor(ByteRange::whole(std::move(data_source))),
                           "while reading {}", data_path);
    PTERO_RETURN_IF_ERROR(state.data.add(tensors), "while reading {}", data_path);
  }
  return ok_status();
}

Result<std::shared_ptr<ModelState>> load(std::shared_ptr<DeviceState> device,
                                         const std::string& path, const ptero_options& options,
                                         ptero_progress_callback callback, void* user) {
  auto state = std::make_shared<ModelState>();
  state->device = std::move(device);
  gpu::Device& gpu_device = state->device->device();
  uint64_t bytes = 0;
  PTERO_RETURN_IF_ERROR(open_program(*state, path, options.data, bytes));
  for (const std::string& sentence : graph::unserved(options.plan, gpu_device.features())) {
    state->device->warn(sentence);
  }
  const Progress progress(callback, user, gpu_device, bytes);
  const Result<llm::Metadata> metadata = llm::read_metadata(state->program, options.plan.context);
  if (options.plan.context != 0 && !metadata.ok()) {
    return metadata.error();  // only language models have a context
  }
  if (!metadata.ok() || options.method != "forward") {
    state->not_language =
        metadata.ok() ? "Another method than forward was loaded." : metadata.error().message();
    PTERO_ASSIGN_OR_RETURN(
        state->method,
        wait_with(graph::MethodModel::load(gpu_device, state->program, state->data, options.method,
                                           ops::all_operators(), ops::host_operators(),
                                           passes::standard_passes(), options.plan),
                  progress));
    return state;
  }
  // The model keeps the program; the state itself would be a circle.
  const auto files = std::make_shared<std::pair<pte::Program, pte::DataMap>>(
      std::move(state->program), std::move(state->data));
  llm::ModelSource source;
  source.program = std::shared_ptr<const pte::Program>(files, &files->first);
  source.data = std::shared_ptr<const pte::DataMap>(files, &files->second);
  source.options = options.plan;
  if (!options.tokenizer.empty()) {
    PTERO_ASSIGN_OR_RETURN(source.tokenizer, read_file(options.tokenizer));
  }
  if (!options.chat_template.empty()) {
    PTERO_ASSIGN_OR_RETURN(source.chat_template, read_file(options.chat_template));
  }
  PTERO_ASSIGN_OR_RETURN(state->language,
                         wait_with(llm::Model::load(gpu_device, std::move(source)), progress));
  state->method = state->language->method();
  return state;
}

// Copies what fits and tells how much there is.
template <typename T>
void hand_out(const T* from, size_t count, T* to, size_t capacity, size_t& total) {
  total = count;
  if (const size_t fits = std::min(count, capacity); fits > 0) {
    std::memcpy(to, from, fits * sizeof(T));
  }
}

Result<const text::Tokenizer*> tokenizer_of(const ptero_model* model) {
  PTERO_RETURN_IF_ERROR(check(model));
  const std::shared_ptr<const llm::Model>& language = model->state->language;
  PTERO_REJECT_IF(language == nullptr, unsupported, "{}", model->state->not_language);
  PTERO_REJECT_IF(!language->tokenizer(), unsupported,
                  "The model brings no tokenizer; load it with option tokenizer.");
  return &*language->tokenizer();
}

}  // namespace
}  // namespace ptero::c_api

using namespace ptero;
using namespace ptero::c_api;

ptero_status ptero_model_load(ptero_device* device, const char* path, const ptero_options* options,
                              ptero_progress_callback progress, void* user, ptero_model** out) {
  return in_turn(device, [&](DeviceState&) -> Status {
    PTERO_RETURN_IF_ERROR(check_pointer(path, "path"));
    PTERO_RETURN_IF_ERROR(check_pointer(out, "out"));
    PTERO_ASSIGN_OR_RETURN(const ptero_options* const from, or_defaults(options));
    PTERO_ASSIGN_OR_RETURN(auto state, load(device->state, path, *from, progress, user),
                           "while loading {}", path);
    *out = new ptero_model{.state = std::move(state)};
    return ok_status();
  });
}

void ptero_model_free(ptero_model* model) {
  end(model);
}

int32_t ptero_model_is_language_model(const ptero_model* model) {
  return is_valid(model) && model->state->language != nullptr ? 1 : 0;
}

int32_t ptero_model_has_tokenizer(const ptero_model* model) {
  return ptero_model_is_language_model(model) != 0 && model->state->language->tokenizer() ? 1 : 0;
}

int32_t ptero_model_has_chat_template(const ptero_model* model) {
  return ptero_model_is_language_model(model) != 0 && model->state->language->chat_template() ? 1
                                                                                              : 0;
}

uint32_t ptero_model_vocabulary(const ptero_model* model) {
  return ptero_model_is_language_model(model) != 0 ? model->state->language->metadata().vocab_size
                                                   : 0;
}

uint32_t ptero_model_context(const ptero_model* model) {
  return ptero_model_is_language_model(model) != 0 ? model->state->language->metadata().max_context
                                                   : 0;
}

ptero_status ptero_encode(const ptero_model* model, const char* text, int32_t add_special,
                          uint32_t* ids, size_t capacity, size_t* count) {
  return guarded([&]() -> Status {
    PTERO_ASSIGN_OR_RETURN(const text::Tokenizer* const tokenizer, tokenizer_of(model));
    PTERO_RETURN_IF_ERROR(check_pointer(text, "text"));
    PTERO_RETURN_IF_ERROR(check_pointer(count, "count"));
    PTERO_REJECT_IF(ids == nullptr && capacity > 0, invalid_argument, "Parameter (ids) is NULL.");
    PTERO_ASSIGN_OR_RETURN(const std::vector<uint32_t> tokens,
                           tokenizer->encode(text, {.add_special = add_special != 0}));
    hand_out(tokens.data(), tokens.size(), ids, capacity, *count);
    return ok_status();
  });
}

ptero_status ptero_decode(const ptero_model* model, const uint32_t* ids, size_t count,
                          int32_t skip_special, char* text, size_t capacity, size_t* size) {
  return guarded([&]() -> Status {
    PTERO_ASSIGN_OR_RETURN(const text::Tokenizer* const tokenizer, tokenizer_of(model));
    PTERO_RETURN_IF_ERROR(check_pointer(size, "size"));
    PTERO_REJECT_IF(ids == nullptr && count > 0, invalid_argument, "Parameter (ids) is NULL.");
    PTERO_REJECT_IF(text == nullptr && capacity > 0, invalid_argument, "Parameter (text) is NULL.");
    const std::string decoded = tokenizer->decode(std::vector<uint32_t>(ids, ids + count),
                                                  {.skip_special = skip_special != 0});
    hand_out(decoded.data(), decoded.size(), text, capacity, *size);
    return ok_status();
  });
}
