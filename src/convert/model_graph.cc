// SPDX-License-Identifier: BSD-3-Clause
// The calls are those that ExecuTorch's exporter writes, in its order, its copies included: what
// looks for patterns in such graphs finds them here too.
#include "convert/model_graph.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "base/composed_source.h"
#include "base/half.h"
#include "convert/graph_maker.h"
#include "convert/weight_bytes.h"

namespace ptero::convert {
namespace {

using Dims = std::vector<uint32_t>;
using pte::GraphDtype;

std::string part(std::string_view whole, std::string_view name) {
  return fmt::format("{}{}", whole, name);
}

class ModelWriter {
 public:
  ModelWriter(const ModelConfig& config, const ConvertOptions& options, WeightSet& weights)
      : c_(config),
        q4_(options.weights == WeightFormat::q4),
        q4_head_(q4_ && !options.float_head),
        dtype_(options.weights == WeightFormat::f16 ? GraphDtype::float16 : GraphDtype::float32),
        threads_(options.threads != 0 ? options.threads
                                      : std::max(1u, std::thread::hardware_concurrency())),
        weights_(weights),
        g_(dtype_),
        bound_(config.max_seq) {}

  Result<ModelGraph> write() {
    const Id tokens = g_.input({1, bound_});
    const Id position = g_.input({1});
    one_ = g_.integer(1);
    zero_ = g_.integer(0);
    write_tables();
    live_ = g_.symbol();
    g_.call("sym_size.int", {tokens, one_, live_});
    PTERO_ASSIGN_OR_RETURN(Id x, write_embedding(tokens));
    if (!c_.rotate_halves) {
      slice_tables(position);
    }
    position_ = position;
    for (uint32_t layer = 0; layer < c_.layers; ++layer) {
      PTERO_ASSIGN_OR_RETURN(x, write_layer(layer, x));
    }
    PTERO_ASSIGN_OR_RETURN(const Id logits, write_head(x));
    out_.graph = g_.finish({logits});
    out_.named_data = g_.named_data();
    return std::move(out_);
  }

 private:
  // ---- weights ----

  void note(const Weight& weight, std::string_view to, bool exact, uint64_t bytes) {
    out_.weights.push_back(
        {weight.name(), std::string(weight.type_name()), std::string(to), exact, bytes});
  }

  std::string_view float_name() const { return dtype_ == GraphDtype::float16 ? "f16" : "f32"; }

  void note_float(const Weight& weight) {
    const bool exact = dtype_ == GraphDtype::float32 || weight.type_name() == "F16";
    note(weight, float_name(), exact, weight.elements() * *pte::element_size(dtype_));
  }

  // A vector, copied as it is small; `padded` with zeros.
  Result<Id> vector(const std::string& name, uint32_t size, uint32_t padded) {
    PTERO_ASSIGN_OR_RETURN(const WeightPtr weight, weights_.take(name, 1, size));
    std::vector<float> values(padded);
    PTERO_RETURN_IF_ERROR(weight->read(0, std::span(values).first(size)));
    note_float(*weight);
    std::vector<std::byte> bytes;
    if (dtype_ == GraphDtype::float32) {
      const auto raw = std::as_bytes(std::span(values));
      bytes.assign(raw.begin(), raw.end());
    } else {
      for (const float value : values) {
        const uint16_t half = float_to_half(value);
        bytes.push_back(static_cast<std::byte>(half & 0xffu));
        bytes.push_back(static_cast<std::byte>(half >> 8));
      }
    }
    return g_.constant(name, dtype_, {padded}, own_bytes(std::move(bytes), name));
  }

  struct Q4Entry {
    std::shared_ptr<Q4Matrix> matrix;
    WeightPtr weight;
  };

  Result<Q4Entry*> q4_matrix(const std::string& name, uint32_t rows, uint32_t columns) {
    const auto found = q4_matrices_.find(name);
    if (found != q4_matrices_.end()) {
      return &found->second;
    }
    PTERO_REJECT_IF(columns % kGroupSize != 0, unsupported,
                    "The rows of {} ({} elements) are no whole groups of {}, as 4-bit weights "
                    "need; choose f32 or f16 weights.",
                    name, columns, kGroupSize);
    PTERO_ASSIGN_OR_RETURN(const WeightPtr weight, weights_.take(name, rows, columns));
    const uint64_t groups = weight->elements() / kGroupSize;
    note(*weight, "4-bit", weight->has_groups(), groups * (kGroupSize / 2 + sizeof(float)));
    Q4Entry& entry = q4_matrices_[name];
    entry = {Q4Matrix::make(weight, threads_), weight};
    return &entry;
  }

  Result<Id> q4_nibbles(const std::string& name, const Q4Entry& entry) {
    const auto rows = static_cast<uint32_t>(entry.weight->rows());
    const auto bytes = static_cast<uint32_t>(entry.weight->columns() / 2);
    return g_.constant(part(name, ".q4"), GraphDtype::uint8, {rows, bytes},
                       entry.matrix->nibbles());
  }

  Result<Id> float_matrix(const std::string& name, uint32_t rows, uint32_t columns) {
    auto found = float_weights_.find(name);
    if (found == float_weights_.end()) {
      PTERO_ASSIGN_OR_RETURN(const WeightPtr weight, weights_.take(name, rows, columns));
      note_float(*weight);
      found = float_weights_.emplace(name, weight).first;
    }
    return g_.constant(name, dtype_, {rows, columns}, float_bytes(found->second, dtype_, threads_));
  }

  // ---- positions ----

  // Neighbours: [context, pairs], of which a step takes the rows of its positions. Halves:
  // [context, rotated], each pair's angle at both of its elements; the operator finds the rows.
  void write_tables() {
    const auto pairs = static_cast<uint32_t>(c_.frequencies.size());
    const uint32_t width = c_.rotate_halves ? 2 * pairs : pairs;
    const auto table = [&](std::string key, double (*function)(double)) {
      const uint64_t item = *pte::element_size(dtype_);
      ByteSourcePtr bytes = generate_bytes(
          uint64_t{c_.context} * width * item,
          [frequencies = c_.frequencies, width, function, item](uint64_t offset,
                                                                std::span<std::byte> out) {
            uint64_t at = offset;
            while (at < offset + out.size()) {
              const uint64_t element = at / item;
              const double position = static_cast<double>(element / width);
              const size_t pair = element % width % frequencies.size();
              const auto value = static_cast<float>(function(position * frequencies[pair]));
              const uint32_t bits =
                  item == 2 ? float_to_half(value) : std::bit_cast<uint32_t>(value);
              // `out` may begin or end within an element.
              for (uint64_t byte = at % item; byte < item && at < offset + out.size(); ++byte) {
                out[at++ - offset] = static_cast<std::byte>(bits >> (8 * byte));
              }
            }
            return ok_status();
          },
          key);
      const Dims dims = {c_.context, width};
      const Id constant = g_.constant(std::move(key), dtype_, dims, std::move(bytes));
      const Id loaded = g_.loaded(dims);
      g_.call("et_vk.prepack.default", {constant, loaded});
      return loaded;
    };
    cosines_ = table("rope.cos", [](double x) { return std::cos(x); });
    sines_ = table("rope.sin", [](double x) { return std::sin(x); });
  }

  void slice_tables(Id position) {
    const Id start = g_.symbol();
    g_.call("et_vk.select_as_symint.default", {position, zero_, g_.integer(-1), start});
    const Id end = g_.symbol();
    g_.call("add", {start, live_, end});
    for (Id* table : {&cosines_, &sines_}) {
      const Id rows = g_.tensor({bound_, static_cast<uint32_t>(c_.frequencies.size())});
      g_.call("aten.slice_copy.Tensor", {*table, zero_, start, end, one_, rows});
      *table = rows;
    }
  }

  // ---- parts ----

  Result<Id> write_embedding(Id tokens) {
    const std::string name = "token_embd.weight";
    const Id x = g_.tensor({1, bound_, c_.width});
    if (!q4_) {
      PTERO_ASSIGN_OR_RETURN(const Id table, float_matrix(name, c_.vocabulary, c_.width));
      const Id no = g_.truth(false);
      g_.call("aten.embedding.default", {table, tokens, g_.integer(-1), no, no, x});
      return x;
    }
    PTERO_ASSIGN_OR_RETURN(Q4Entry * entry, q4_matrix(name, c_.vocabulary, c_.width));
    PTERO_ASSIGN_OR_RETURN(const Id nibbles, q4_nibbles(name, *entry));
    const auto groups = static_cast<uint32_t>(entry->matrix->groups());
    const Id scales = g_.constant(part(name, ".row_scales"), GraphDtype::float32,
                                  {c_.vocabulary, groups}, entry->matrix->embedding_scales());
    g_.call("et_vk.embedding_q4gsw.default",
            {nibbles, scales, g_.integer(kGroupSize), tokens, g_.truth(true), x});
    return x;
  }

  Result<Id> write_norm(Id x, Dims dims, const std::string& name) {
    PTERO_ASSIGN_OR_RETURN(const Id weight, vector(name, dims.back(), dims.back()));
    const Id y = g_.tensor(std::move(dims));
    g_.call("et_vk.rms_norm.default", {x, weight, g_.real(double{c_.norm_epsilon}), y});
    return y;
  }

  // x [1, S, columns] -> [1, S, ...shape]; without a shape it is the head, [1, columns] -> [1,
  // rows].
  Result<Id> write_linear(Id x, const std::string& name, uint32_t rows, uint32_t columns,
                          const Dims& shape) {
    const bool steps = !shape.empty();
    const bool q4 = steps ? q4_ : q4_head_;
    const std::string weight = part(name, ".weight");
    const uint32_t padded = (rows + 3) / 4 * 4;
    Id bias = 0;
    if (weights_.has(part(name, ".bias"))) {
      PTERO_ASSIGN_OR_RETURN(bias, vector(part(name, ".bias"), rows, q4 ? padded : rows));
    } else {
      bias = g_.none();
    }
    if (q4) {
      PTERO_ASSIGN_OR_RETURN(Q4Entry * entry, q4_matrix(weight, rows, columns));
      PTERO_ASSIGN_OR_RETURN(const Id nibbles, q4_nibbles(weight, *entry));
      const auto groups = static_cast<uint32_t>(entry->matrix->groups());
      const Id scales = g_.constant(part(weight, ".scales"), GraphDtype::float32, {groups, padded},
                                    entry->matrix->linear_scales());
      const Id y = g_.tensor(steps ? Dims{1, bound_, rows} : Dims{1, rows});
      g_.call("et_vk.linear_q4gsw.default", {x, nibbles, scales, g_.integer(kGroupSize), bias, y});
      return steps ? write_view(y, shape) : y;
    }
    PTERO_ASSIGN_OR_RETURN(const Id matrix, float_matrix(weight, rows, columns));
    if (steps) {
      const Id flat = g_.tensor({bound_, columns});
      g_.call("aten.view_copy.default", {x, g_.list({live_, g_.integer(columns)}), flat});
      x = flat;
    }
    const Id y = g_.tensor({steps ? bound_ : 1, rows});
    g_.call("aten.linear.default", {x, matrix, bias, y});
    return steps ? write_view(y, shape) : y;
  }

  // To [1, S, ...shape].
  Id write_view(Id x, const Dims& shape) {
    Dims dims = {1, bound_};
    std::vector<Id> sizes = {one_, live_};
    for (const uint32_t dim : shape) {
      dims.push_back(dim);
      sizes.push_back(g_.integer(dim));
    }
    const Id y = g_.tensor(std::move(dims));
    g_.call("aten.view_copy.default", {x, g_.list(std::move(sizes)), y});
    return y;
  }

  Id write_binary(const char* name, Id a, Id b, uint32_t width) {
    const Id y = g_.tensor({1, bound_, width});
    std::vector<Id> args = {a, b};
    if (name == std::string_view("aten.add.Tensor")) {
      args.push_back(one_);
    }
    args.push_back(y);
    g_.call(name, std::move(args));
    return y;
  }

  Id cache() {
    // All start as the same zeros.
    const Dims dims = {1, c_.context, c_.kv_heads, c_.head_dim};
    const uint64_t bytes =
        uint64_t{c_.context} * c_.kv_heads * c_.head_dim * *pte::element_size(dtype_);
    return g_.state("kv_cache.zeros", dims,
                    generate_bytes(
                        bytes,
                        [](uint64_t, std::span<std::byte> out) {
                          std::ranges::fill(out, std::byte{0});
                          return ok_status();
                        },
                        "kv_cache.zeros"));
  }

  Result<Id> write_attention(const std::string& block, Id h) {
    const Dims q_shape = {c_.heads, c_.head_dim};
    const Dims kv_shape = {c_.kv_heads, c_.head_dim};
    const uint32_t q_width = c_.heads * c_.head_dim;
    const uint32_t kv_width = c_.kv_heads * c_.head_dim;
    PTERO_ASSIGN_OR_RETURN(Id q,
                           write_linear(h, part(block, "attn_q"), q_width, c_.width, q_shape));
    PTERO_ASSIGN_OR_RETURN(Id k,
                           write_linear(h, part(block, "attn_k"), kv_width, c_.width, kv_shape));
    PTERO_ASSIGN_OR_RETURN(const Id v,
                           write_linear(h, part(block, "attn_v"), kv_width, c_.width, kv_shape));
    const Dims q_dims = {1, bound_, c_.heads, c_.head_dim};
    const Dims kv_dims = {1, bound_, c_.kv_heads, c_.head_dim};
    if (weights_.has(part(block, "attn_q_norm.weight")) || c_.architecture == "qwen3") {
      PTERO_ASSIGN_OR_RETURN(q, write_norm(q, q_dims, part(block, "attn_q_norm.weight")));
      PTERO_ASSIGN_OR_RETURN(k, write_norm(k, kv_dims, part(block, "attn_k_norm.weight")));
    }
    if (c_.rotate_halves) {
      select_start();
    }
    const Id turned_q = g_.tensor(q_dims);
    const Id turned_k = g_.tensor(kv_dims);
    const Id both = g_.list({turned_q, turned_k});
    if (c_.rotate_halves) {
      g_.call("et_vk.apply_rotary_emb_hf.default", {q, k, cosines_, sines_, *start_, both});
    } else {
      g_.call("et_vk.apply_rotary_emb.default", {q, k, cosines_, sines_, both});
    }
    select_start();
    const Id k_cache = cache();
    const Id v_cache = cache();
    const Id attended = g_.tensor(q_dims);
    const Id no_mask = g_.none();
    const Id no_scale = g_.none();
    g_.call("sdpa_with_kv_cache.default", {turned_q, turned_k, v, k_cache, v_cache, *start_, one_,
                                           no_mask, zero_, g_.truth(true), no_scale, attended});
    const Id flat = write_view(attended, {q_width});
    return write_linear(flat, part(block, "attn_output"), c_.width, q_width, {c_.width});
  }

  // One for all layers, where the first needs it.
  void select_start() {
    if (!start_) {
      start_ = g_.symbol();
      g_.call("et_vk.select_as_symint.default", {position_, zero_, zero_, *start_});
    }
  }

  Result<Id> write_ffn(const std::string& block, Id h) {
    const Dims wide = {c_.ffn_width};
    PTERO_ASSIGN_OR_RETURN(const Id gate,
                           write_linear(h, part(block, "ffn_gate"), c_.ffn_width, c_.width, wide));
    const Id sigmoid = g_.tensor({1, bound_, c_.ffn_width});
    g_.call("aten.sigmoid.default", {gate, sigmoid});
    const Id swish = write_binary("aten.mul.Tensor", gate, sigmoid, c_.ffn_width);
    PTERO_ASSIGN_OR_RETURN(const Id up,
                           write_linear(h, part(block, "ffn_up"), c_.ffn_width, c_.width, wide));
    const Id product = write_binary("aten.mul.Tensor", swish, up, c_.ffn_width);
    return write_linear(product, part(block, "ffn_down"), c_.width, c_.ffn_width, {c_.width});
  }

  Result<Id> write_layer(uint32_t layer, Id x) {
    const std::string block = fmt::format("blk.{}.", layer);
    const Dims dims = {1, bound_, c_.width};
    PTERO_ASSIGN_OR_RETURN(const Id h, write_norm(x, dims, part(block, "attn_norm.weight")));
    PTERO_ASSIGN_OR_RETURN(const Id attended, write_attention(block, h));
    const Id middle = write_binary("aten.add.Tensor", x, attended, c_.width);
    PTERO_ASSIGN_OR_RETURN(const Id h2, write_norm(middle, dims, part(block, "ffn_norm.weight")));
    PTERO_ASSIGN_OR_RETURN(const Id fed, write_ffn(block, h2));
    return write_binary("aten.add.Tensor", middle, fed, c_.width);
  }

  Result<Id> write_head(Id x) {
    const Id last = g_.tensor({1, c_.width});
    g_.call("aten.select_copy.int", {x, one_, g_.integer(-1), last});
    PTERO_ASSIGN_OR_RETURN(const Id h, write_norm(last, {1, c_.width}, "output_norm.weight"));
    out_.tied = !weights_.has("output.weight");
    return write_linear(h, out_.tied ? "token_embd" : "output", c_.vocabulary, c_.width, {});
  }

  const ModelConfig& c_;
  bool q4_;
  bool q4_head_;
  GraphDtype dtype_;
  unsigned threads_;
  WeightSet& weights_;
  GraphMaker g_;
  uint32_t bound_;  // most tokens of a run
  ModelGraph out_;
  std::map<std::string, Q4Entry> q4_matrices_;
  std::map<std::string, WeightPtr> float_weights_;

  Id one_ = 0;
  Id zero_ = 0;
  Id live_ = 0;  // tokens of this run
  Id position_ = 0;
  Id cosines_ = 0;
  Id sines_ = 0;
  std::optional<Id> start_;
};

}  // namespace

Result<ModelGraph> make_model_graph(const ModelConfig& config, const ConvertOptions& options,
                                    WeightSet& weights) {
  return ModelWriter(config, options, weights).write();
}

}  // namespace ptero::convert
