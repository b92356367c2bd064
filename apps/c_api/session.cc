// SPDX-License-Identifier: BSD-3-Clause
// Sessions, tensors, and running a method.
#include <chrono>
#include <cstring>

#include "c_api/handles.h"
#include "gpu/native/wait.h"

namespace ptero::c_api {
namespace {

// Of types whose elements the caller can lay out: no packed or exotic ones.
Result<pte::ScalarType> type_of(int32_t type) {
  for (const int32_t known : {PTERO_UINT8, PTERO_INT8, PTERO_INT16, PTERO_INT32, PTERO_INT64,
                              PTERO_FLOAT16, PTERO_FLOAT32, PTERO_FLOAT64, PTERO_BOOL}) {
    if (known == type) {
      return static_cast<pte::ScalarType>(type);
    }
  }
  return make_error(ErrorCode::invalid_argument, "Element type ({}) is none that Ptero knows.",
                    type);
}

Result<graph::HostTensor> make_tensor(int32_t type, const int64_t* shape, size_t rank,
                                      const void* data, size_t size) {
  PTERO_ASSIGN_OR_RETURN(const pte::ScalarType scalar, type_of(type));
  PTERO_REJECT_IF(rank > graph::kMaxRank, invalid_argument, "Rank ({}) exceeds the limit ({}).",
                  rank, graph::kMaxRank);
  PTERO_REJECT_IF(shape == nullptr && rank > 0, invalid_argument, "Parameter (shape) is NULL.");
  graph::Shape made;
  uint64_t bytes = *pte::element_size(scalar);
  for (size_t i = 0; i < rank; ++i) {
    PTERO_REJECT_IF(shape[i] < 0 || shape[i] > INT32_MAX, invalid_argument,
                    "Dimension {} ({}) does not lie between 0 and {}.", i, shape[i], INT32_MAX);
    made.append(static_cast<uint32_t>(shape[i]));
    bytes *= static_cast<uint64_t>(shape[i]);
    PTERO_REJECT_IF(bytes > (uint64_t{1} << 40), invalid_argument,
                    "A tensor of shape {} takes more than a terabyte.", graph::to_string(made));
  }
  PTERO_REJECT_IF(data != nullptr && size != bytes, invalid_argument,
                  "Size ({} bytes) of the data differs from what shape {} takes ({}).", size,
                  graph::to_string(made), bytes);
  graph::HostTensor tensor = graph::make_host_tensor(scalar, made);
  if (data != nullptr && bytes > 0) {
    std::memcpy(tensor.bytes.data(), data, bytes);
  }
  return tensor;
}

Status run(SessionState& state, const ptero_tensor* const* inputs, size_t count) {
  PTERO_REJECT_IF(inputs == nullptr && count > 0, invalid_argument, "Parameter (inputs) is NULL.");
  std::vector<graph::HostTensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    PTERO_RETURN_IF_ERROR(check(inputs[i]), "in input {}", i);
    tensors.push_back(inputs[i]->tensor);
  }
  state.cancelled = false;
  state.outputs.clear();
  graph::MethodSession& method =
      state.language != nullptr ? state.language->method() : *state.method;
  if (state.language != nullptr) {
    PTERO_RETURN_IF_ERROR(state.language->rewind(0));
  }
  PTERO_ASSIGN_OR_RETURN(const auto running, method.run(std::move(tensors)));
  while (!running->done()) {
    const Status status = gpu::wait(*running, std::chrono::milliseconds(50));
    if (!status.ok() && status.error().code() != ErrorCode::timeout) {
      return status.error();
    }
    PTERO_REJECT_IF(state.cancelled && !running->done(), cancelled, "The run was cancelled.");
  }
  PTERO_ASSIGN_OR_RETURN(std::vector<graph::HostTensor> outputs, running->take());
  for (graph::HostTensor& output : outputs) {
    state.outputs.push_back({.tensor = std::move(output)});
  }
  return ok_status();
}

}  // namespace
}  // namespace ptero::c_api

using namespace ptero;
using namespace ptero::c_api;

ptero_status ptero_session_create(ptero_model* model, ptero_session** out) {
  return in_turn(model, [&](ModelState& from) -> Status {
    PTERO_RETURN_IF_ERROR(check_pointer(out, "out"));
    auto state = std::make_shared<SessionState>();
    state->model = model->state;
    if (from.language != nullptr) {
      PTERO_ASSIGN_OR_RETURN(state->language, llm::Session::create(from.language));
    } else {
      PTERO_ASSIGN_OR_RETURN(state->method, graph::MethodSession::create(from.method));
    }
    *out = new ptero_session{.state = std::move(state)};
    return ok_status();
  });
}

void ptero_session_free(ptero_session* session) {
  end(session);
}

size_t ptero_session_length(const ptero_session* session) {
  return is_valid(session) && session->state->language != nullptr
             ? session->state->language->tokens().size()
             : 0;
}

ptero_status ptero_session_rewind(ptero_session* session, size_t length) {
  return in_turn(session, [&](SessionState& state) -> Status {
    PTERO_REJECT_IF(state.language == nullptr, unsupported, "{}", state.model->not_language);
    return state.language->rewind(length);
  });
}

void ptero_cancel(ptero_session* session) {
  if (is_valid(session)) {
    session->state->cancelled = true;
  }
}

ptero_status ptero_tensor_create(int32_t type, const int64_t* shape, size_t rank, const void* data,
                                 size_t size, ptero_tensor** out) {
  return guarded([&]() -> Status {
    PTERO_RETURN_IF_ERROR(check_pointer(out, "out"));
    PTERO_ASSIGN_OR_RETURN(graph::HostTensor tensor, make_tensor(type, shape, rank, data, size));
    *out = new ptero_tensor{.tensor = std::move(tensor)};
    return ok_status();
  });
}

void ptero_tensor_free(ptero_tensor* tensor) {
  if (is_valid(tensor)) {
    tensor->kind = {};
    delete tensor;
  }
}

int32_t ptero_tensor_type(const ptero_tensor* tensor) {
  return is_valid(tensor) ? static_cast<int32_t>(tensor->tensor.type) : -1;
}

size_t ptero_tensor_rank(const ptero_tensor* tensor) {
  return is_valid(tensor) ? tensor->tensor.shape.rank() : 0;
}

int64_t ptero_tensor_dimension(const ptero_tensor* tensor, size_t index) {
  return index < ptero_tensor_rank(tensor) ? int64_t{tensor->tensor.shape[index]} : -1;
}

const void* ptero_tensor_data(const ptero_tensor* tensor) {
  return is_valid(tensor) ? tensor->tensor.bytes.data() : nullptr;
}

size_t ptero_tensor_size(const ptero_tensor* tensor) {
  return is_valid(tensor) ? tensor->tensor.bytes.size() : 0;
}

ptero_status ptero_run(ptero_session* session, const ptero_tensor* const* inputs, size_t count) {
  return in_turn(session, [&](SessionState& state) { return run(state, inputs, count); });
}

size_t ptero_output_count(const ptero_session* session) {
  return is_valid(session) ? session->state->outputs.size() : 0;
}

const ptero_tensor* ptero_output(const ptero_session* session, size_t index) {
  return index < ptero_output_count(session) ? &session->state->outputs[index] : nullptr;
}
