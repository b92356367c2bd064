// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/composed_source.h"
#include "passes/cache_tensors.h"
#include "passes/passes.h"
#include "passes/rope_table.h"

namespace ptero::passes {
namespace {

using pte::GraphTensor;

class Resizer {
 public:
  Resizer(pte::Graph& graph, uint32_t context) : graph_(graph), context_(context) {}

  Status resize() {
    using pte::GraphDtype;
    const std::set<uint32_t> written =
        written_caches(graph_, {GraphDtype::float32, GraphDtype::float16});
    if (written.empty()) {
      return ok_status();
    }
    PTERO_RETURN_IF_ERROR(find_capacity(written));
    if (capacity_ == context_) {
      return ok_status();
    }
    PTERO_RETURN_IF_ERROR(check_uses(written));
    if (context_ > capacity_) {
      PTERO_RETURN_IF_ERROR(extend_tables());
    }
    Status status = ok_status();
    change_caches(graph_, written, [&](uint32_t id) {
      if (status.ok()) {
        status = resize_cache(id);
      }
    });
    return status;
  }

 private:
  GraphTensor* tensor(uint32_t id) { return std::get_if<GraphTensor>(&graph_.values[id]); }

  // [1, positions, heads, elements], or without the 1.
  static std::optional<size_t> positions_of(const GraphTensor& cache) {
    const size_t rank = cache.dims.size();
    return rank == 3 || (rank == 4 && cache.dims[0] == 1) ? std::optional(rank - 3) : std::nullopt;
  }

  template <typename... Args>
  Error refusal(fmt::format_string<Args...> reason, Args&&... args) const {
    return make_error(ErrorCode::unsupported,
                      "The context cannot be changed from {} to {} positions: {}.", capacity_,
                      context_, fmt::format(reason, std::forward<Args>(args)...));
  }

  Status find_capacity(const std::set<uint32_t>& caches) {
    for (const uint32_t id : caches) {
      const std::optional<size_t> axis = positions_of(*tensor(id));
      PTERO_REJECT_IF(!axis, unsupported,
                      "The context cannot be changed: the KV cache in tensor {} is not [1, "
                      "positions, heads, elements].",
                      id);
      const uint32_t capacity = tensor(id)->dims[*axis];
      PTERO_REJECT_IF(capacity_ != 0 && capacity != capacity_, unsupported,
                      "The context cannot be changed: some KV caches hold {} positions and some "
                      "{}.",
                      capacity_, capacity);
      capacity_ = capacity;
    }
    return ok_status();
  }

  Status check_uses(const std::set<uint32_t>& caches) {
    if (only_caches(caches, graph_) != caches) {
      return refusal("more than attention uses its KV caches");
    }
    for (const pte::OperatorCall& call : graph_.chain) {
      const bool rings = call.name == "update_cache_with_indices.default";
      if (rings && call.args.size() > 4 && !is_null(call.args[3])) {
        return refusal("its KV caches are rings");
      }
      const size_t mask = call.name == "sdpa_with_kv_cache.default" ? 7 : 4;
      if ((mask == 7 || call.name == "custom_sdpa.default") && mask < call.args.size() &&
          !is_null(call.args[mask])) {
        return refusal("attention has a mask, which is of the program's size");
      }
    }
    return ok_status();
  }

  // Whether it takes rows of its first argument.
  bool takes_rows(const pte::OperatorCall& call) const {
    if (call.name == "aten.index.Tensor") {
      return true;
    }
    return (call.name == "aten.slice_copy.Tensor" || call.name == "aten.select_copy.int" ||
            call.name == "aten.index_select.default") &&
           graph_.values[call.args[1]] == pte::GraphValue(int64_t{0});
  }

  bool is_null(uint32_t id) const { return std::holds_alternative<pte::Null>(graph_.values[id]); }

  Status resize_cache(uint32_t id) {
    GraphTensor& cache = *tensor(id);
    PTERO_ASSIGN_OR_RETURN(const uint64_t old_size, pte::tensor_bytes(cache.dtype, cache.dims));
    cache.dims[*positions_of(cache)] = context_;
    PTERO_ASSIGN_OR_RETURN(const uint64_t size, pte::tensor_bytes(cache.dtype, cache.dims),
                           "for a context of {}", context_);
    if (!cache.constant_id) {
      return ok_status();
    }
    // Others may read the constant as it is.
    pte::GraphConstant constant = graph_.constants[*cache.constant_id];
    if (size < old_size) {
      PTERO_ASSIGN_OR_RETURN(constant.data, constant.data.subrange(0, size));
    } else {
      PTERO_ASSIGN_OR_RETURN(ByteSourcePtr longer,
                             compose_bytes(size, {{0, constant.data}}, "longer cache"));
      constant.data = ByteRange::whole(std::move(longer));
    }
    cache.constant_id = add_constant(std::move(constant));
    return ok_status();
  }

  uint32_t add_constant(pte::GraphConstant constant) {
    if (!constant.named_key.empty()) {
      constant.named_key += fmt::format(" for {} positions", context_);
    }
    graph_.constants.push_back(std::move(constant));
    return static_cast<uint32_t>(graph_.constants.size() - 1);
  }

  // ---- tables ----

  Status extend_tables() {
    for (const pte::OperatorCall& call : graph_.chain) {
      const bool by_rows = call.name == "et_vk.apply_rotary_emb.default";
      if (by_rows || call.name == "et_vk.apply_rotary_emb_hf.default") {
        PTERO_ASSIGN_OR_RETURN(const uint32_t cosines, table_behind(call.args[2]));
        PTERO_ASSIGN_OR_RETURN(const uint32_t sines, table_behind(call.args[3]));
        PTERO_RETURN_IF_ERROR(extend(cosines, sines));
      }
    }
    // What else has a row for each position.
    for (const pte::OperatorCall& call : graph_.chain) {
      const bool embeds = call.name.find("embedding") != std::string::npos;
      if (!takes_rows(call) && !embeds) {
        continue;
      }
      const std::set<uint32_t> inputs(graph_.inputs.begin(), graph_.inputs.end());
      const bool by_token = embeds && std::any_of(call.args.begin(), call.args.end(),
                                                  [&](uint32_t id) { return inputs.contains(id); });
      const std::optional<uint32_t> from = constant_behind(call.args[0]);
      if (!by_token && from && !extended_.contains(*from) && !tensor(*from)->dims.empty() &&
          tensor(*from)->dims[0] == capacity_) {
        return refusal("operator {} takes rows of a table that cannot be computed further",
                       call.name);
      }
    }
    return ok_status();
  }

  // The constant that this is, or is made of as the graph is loaded.
  std::optional<uint32_t> constant_behind(uint32_t id) {
    for (const pte::OperatorCall& call : graph_.chain) {
      if (call.name == kPrepack && call.args.size() == 2 && call.args[1] == id) {
        id = call.args[0];
        break;
      }
    }
    const GraphTensor* value = tensor(id);
    return value != nullptr && value->constant_id ? std::optional(id) : std::nullopt;
  }

  // The constant whose rows come to a rotation.
  Result<uint32_t> table_behind(uint32_t id) {
    for (size_t i = graph_.chain.size(); i-- > 0;) {
      const pte::OperatorCall& call = graph_.chain[i];
      if (call.args.back() == id && call.args.size() > 1 && call.name != kPrepack) {
        id = call.args[0];
        if (takes_rows(call)) {
          break;
        }
      }
    }
    const std::optional<uint32_t> constant = constant_behind(id);
    const GraphTensor* table = constant ? tensor(*constant) : nullptr;
    if (table == nullptr || table->dims.size() != 2 ||
        (table->dtype != pte::GraphDtype::float32 && table->dtype != pte::GraphDtype::float16)) {
      return refusal("the angles of a rotation come from no table of rows");
    }
    return *constant;
  }

  Status extend(uint32_t cosines, uint32_t sines) {
    const GraphTensor table = *tensor(cosines);
    if (extended_.contains(cosines) || table.dims[0] >= context_) {
      extended_.insert({cosines, sines});
      return ok_status();
    }
    if (tensor(sines)->dims != table.dims || tensor(sines)->dtype != table.dtype) {
      return refusal("its tables of cosines and sines differ in shape");
    }
    const ByteRange cosine_bytes = graph_.constants[*table.constant_id].data;
    const ByteRange sine_bytes = graph_.constants[*tensor(sines)->constant_id].data;
    PTERO_ASSIGN_OR_RETURN(
        const RopeAngles angles,
        find_rope_angles(cosine_bytes, sine_bytes, table.dtype, table.dims[0], table.dims[1]),
        "while changing the context from {} to {}", capacity_, context_);
    for (const auto& [id, bytes] : {std::pair(cosines, cosine_bytes), {sines, sine_bytes}}) {
      PTERO_RETURN_IF_ERROR(check_readers(id));
      pte::GraphConstant constant = graph_.constants[*tensor(id)->constant_id];
      PTERO_ASSIGN_OR_RETURN(constant.data,
                             extend_rope_table(bytes, angles, id == sines, table.dtype, context_));
      tensor(id)->constant_id = add_constant(std::move(constant));
      tensor(id)->dims[0] = context_;
      for (const pte::OperatorCall& call : graph_.chain) {
        if (call.name == kPrepack && call.args[0] == id) {
          tensor(call.args[1])->dims[0] = context_;
        }
      }
      extended_.insert(id);
    }
    return ok_status();
  }

  // Whoever reads the table must not mind that it is longer.
  Status check_readers(uint32_t table) {
    std::set<uint32_t> ids = {table};
    for (const pte::OperatorCall& call : graph_.chain) {
      for (size_t i = 0; i < call.args.size(); ++i) {
        if (!ids.contains(call.args[i])) {
          continue;
        }
        const bool rotates = call.name == "et_vk.apply_rotary_emb_hf.default" && (i == 2 || i == 3);
        const bool loads = call.name == kPrepack;
        if (loads && i == 0 && tensor(call.args[1]) != nullptr &&
            tensor(call.args[1])->dims == tensor(table)->dims) {
          ids.insert(call.args[1]);
        } else if (!rotates && !(loads && i == 1) && !(takes_rows(call) && i == 0)) {
          return refusal("operator {} also reads a table of rotary angles", call.name);
        }
      }
    }
    return ok_status();
  }

  pte::Graph& graph_;
  uint32_t context_;
  uint32_t capacity_ = 0;  // what the program has
  std::set<uint32_t> extended_;
};

}  // namespace

Status resize_context(pte::Graph& graph, const graph::DeviceFacts& device) {
  return device.options.context == 0 ? ok_status()
                                     : Resizer(graph, device.options.context).resize();
}

}  // namespace ptero::passes
