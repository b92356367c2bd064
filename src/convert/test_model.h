// SPDX-License-Identifier: BSD-3-Clause
// Small language models in GGUF files made in memory, and what they answer by definition.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "gguf/dequantize.h"
#include "gguf/test_file.h"

namespace ptero::convert::test {

using gguf::TensorType;
using gguf::test::Bytes;
using gguf::test::TestFile;

struct TestModel {
  std::string architecture = "llama";
  uint32_t layers = 2;
  uint32_t width = 64;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_dim = 16;
  uint32_t ffn_width = 96;
  uint32_t vocabulary = 50;
  uint32_t trained_context = 64;
  double rope_base = 10000;
  bool tied = true;
  bool biases = false;      // of queries, keys and values
  bool head_norms = false;  // of queries and keys
  bool rope_factors = false;
  TensorType type = TensorType::q4_0;  // of matrices: q4_0, f16 or f32

  TestFile file;
  std::map<std::string, std::vector<double>> weights;  // what the file says

  // Fills both; the same numbers each time.
  void make() {
    std::mt19937 random(7);
    const auto key = [&](const char* name) { return architecture + "." + name; };
    file.text("general.architecture", architecture);
    file.u32(key("block_count"), layers);
    file.u32(key("embedding_length"), width);
    file.u32(key("feed_forward_length"), ffn_width);
    file.u32(key("context_length"), trained_context);
    file.u32(key("attention.head_count"), heads);
    file.u32(key("attention.head_count_kv"), kv_heads);
    if (head_dim != width / heads) {
      file.u32(key("attention.key_length"), head_dim);
      file.u32(key("attention.value_length"), head_dim);
    }
    file.f32(key("attention.layer_norm_rms_epsilon"), 1e-5f);
    file.f32(key("rope.freq_base"), static_cast<float>(rope_base));
    matrix(random, "token_embd.weight", vocabulary, width, 1.0f);
    vector(random, "output_norm.weight", width, 1.0f);
    if (!tied) {
      matrix(random, "output.weight", vocabulary, width, 0.2f);
    }
    if (rope_factors) {
      vector(random, "rope_freqs.weight", head_dim / 2, 3.0f);
    }
    for (uint32_t layer = 0; layer < layers; ++layer) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      vector(random, block + "attn_norm.weight", width, 1.0f);
      matrix(random, block + "attn_q.weight", heads * head_dim, width, 0.3f);
      matrix(random, block + "attn_k.weight", kv_heads * head_dim, width, 0.3f);
      matrix(random, block + "attn_v.weight", kv_heads * head_dim, width, 0.2f);
      matrix(random, block + "attn_output.weight", width, heads * head_dim, 0.2f);
      if (biases) {
        vector(random, block + "attn_q.bias", heads * head_dim, 0.0f);
        vector(random, block + "attn_k.bias", kv_heads * head_dim, 0.0f);
        vector(random, block + "attn_v.bias", kv_heads * head_dim, 0.0f);
      }
      if (head_norms) {
        vector(random, block + "attn_q_norm.weight", head_dim, 1.0f);
        vector(random, block + "attn_k_norm.weight", head_dim, 1.0f);
      }
      vector(random, block + "ffn_norm.weight", width, 1.0f);
      matrix(random, block + "ffn_gate.weight", ffn_width, width, 0.2f);
      matrix(random, block + "ffn_up.weight", ffn_width, width, 0.2f);
      matrix(random, block + "ffn_down.weight", width, ffn_width, 0.2f);
    }
  }

  // Logits of the last token.
  std::vector<double> answer(const std::vector<int64_t>& tokens) const;

 private:
  void vector(std::mt19937& random, const std::string& name, uint32_t size, float middle) {
    std::uniform_real_distribution<float> spread(-0.3f, 0.3f);
    std::vector<float> values(size);
    for (float& value : values) {
      value = middle + spread(random);
    }
    weights[name].assign(values.begin(), values.end());
    file.tensor(name, {size}, values);
  }

  void matrix(std::mt19937& random, const std::string& name, uint32_t rows, uint32_t columns,
              float size) {
    std::uniform_real_distribution<float> spread(-size, size);
    Bytes bytes;
    const size_t count = size_t{rows} * columns;
    if (type == TensorType::q4_0) {
      for (size_t i = 0; i < count; i += 32) {
        gguf::test::append(bytes, float_to_half(spread(random) / 8));
        for (int k = 0; k < 16; ++k) {
          gguf::test::append(bytes, static_cast<uint8_t>(random()));
        }
      }
    } else {
      for (size_t i = 0; i < count; ++i) {
        const uint16_t half = float_to_half(spread(random));
        if (type == TensorType::f16) {
          gguf::test::append(bytes, half);
        } else {
          gguf::test::append(bytes, half_to_float(half));
        }
      }
    }
    std::vector<float> values(count);
    (void)gguf::dequantize(type, bytes, values);
    weights[name].assign(values.begin(), values.end());
    file.tensor(name, {columns, rows}, type, bytes);
  }
};

// y = W x (+ bias) for each row of W.
inline std::vector<double> times(const TestModel& m, const std::string& name,
                                 const std::vector<double>& x) {
  const std::vector<double>& w = m.weights.at(name + ".weight");
  std::vector<double> y(w.size() / x.size());
  const auto bias = m.weights.find(name + ".bias");
  for (size_t r = 0; r < y.size(); ++r) {
    y[r] = bias == m.weights.end() ? 0 : bias->second[r];
    for (size_t c = 0; c < x.size(); ++c) {
      y[r] += w[r * x.size() + c] * x[c];
    }
  }
  return y;
}

// Each run of w.size() elements by itself.
inline std::vector<double> normalized(std::vector<double> x, const std::vector<double>& w) {
  for (size_t start = 0; start < x.size(); start += w.size()) {
    double sum = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      sum += x[start + i] * x[start + i];
    }
    const double factor = 1 / std::sqrt(sum / static_cast<double>(w.size()) + double{1e-5f});
    for (size_t i = 0; i < w.size(); ++i) {
      x[start + i] *= factor * w[i];
    }
  }
  return x;
}

inline void rotate(const TestModel& m, size_t position, std::vector<double>& x) {
  const size_t dim = m.head_dim;
  const bool halves = m.architecture != "llama";
  for (size_t head = 0; head < x.size(); head += dim) {
    for (size_t i = 0; i < dim / 2; ++i) {
      double angle = static_cast<double>(position) *
                     std::pow(double{static_cast<float>(m.rope_base)},
                              -2.0 * static_cast<double>(i) / static_cast<double>(dim));
      if (m.rope_factors) {
        angle /= m.weights.at("rope_freqs.weight")[i];
      }
      double& a = x[head + (halves ? i : 2 * i)];
      double& b = x[head + (halves ? i + dim / 2 : 2 * i + 1)];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = turned;
    }
  }
}

inline std::vector<double> TestModel::answer(const std::vector<int64_t>& tokens) const {
  struct Cache {
    std::vector<std::vector<double>> keys;
    std::vector<std::vector<double>> values;
  };
  std::vector<Cache> caches(layers);
  std::vector<double> x;
  for (size_t position = 0; position < tokens.size(); ++position) {
    const std::vector<double>& table = weights.at("token_embd.weight");
    const auto row = table.begin() + static_cast<ptrdiff_t>(tokens[position]) * width;
    x.assign(row, row + width);
    for (uint32_t layer = 0; layer < layers; ++layer) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      Cache& cache = caches[layer];
      const std::vector<double> h = normalized(x, weights.at(block + "attn_norm.weight"));
      std::vector<double> q = times(*this, block + "attn_q", h);
      std::vector<double> k = times(*this, block + "attn_k", h);
      if (head_norms) {
        q = normalized(q, weights.at(block + "attn_q_norm.weight"));
        k = normalized(k, weights.at(block + "attn_k_norm.weight"));
      }
      rotate(*this, position, q);
      rotate(*this, position, k);
      cache.keys.push_back(k);
      cache.values.push_back(times(*this, block + "attn_v", h));
      std::vector<double> attended(q.size());
      for (size_t head = 0; head < heads; ++head) {
        const size_t own = head * head_dim;
        const size_t shared = head / (heads / kv_heads) * head_dim;
        std::vector<double> scores(position + 1);
        double sum = 0;
        for (size_t t = 0; t <= position; ++t) {
          double dot = 0;
          for (size_t i = 0; i < head_dim; ++i) {
            dot += q[own + i] * cache.keys[t][shared + i];
          }
          scores[t] = std::exp(dot / std::sqrt(double{static_cast<double>(head_dim)}));
          sum += scores[t];
        }
        for (size_t t = 0; t <= position; ++t) {
          for (size_t i = 0; i < head_dim; ++i) {
            attended[own + i] += scores[t] / sum * cache.values[t][shared + i];
          }
        }
      }
      const std::vector<double> out = times(*this, block + "attn_output", attended);
      for (size_t i = 0; i < width; ++i) {
        x[i] += out[i];
      }
      const std::vector<double> h2 = normalized(x, weights.at(block + "ffn_norm.weight"));
      std::vector<double> gate = times(*this, block + "ffn_gate", h2);
      const std::vector<double> up = times(*this, block + "ffn_up", h2);
      for (size_t i = 0; i < gate.size(); ++i) {
        gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      }
      const std::vector<double> down = times(*this, block + "ffn_down", gate);
      for (size_t i = 0; i < width; ++i) {
        x[i] += down[i];
      }
    }
  }
  x = normalized(x, weights.at("output_norm.weight"));
  return times(*this, tied ? "token_embd" : "output", x);
}

}  // namespace ptero::convert::test
