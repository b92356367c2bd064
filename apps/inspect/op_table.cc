// SPDX-License-Identifier: BSD-3-Clause
#include "inspect/op_table.h"

namespace ptero::inspect {
namespace {

struct Row {
  std::string_view name;
  OpInfo info;
};

constexpr OpInfo one(Family family) {
  return {family, Cost::one, false};
}
constexpr OpInfo kView = {Family::layout, Cost::none, true};

// The operators that ExecuTorch's partitioner hands to a VulkanBackend delegate. Overloads that
// behave alike share a row through the trailing '*'.
constexpr Row kRows[] = {
    {"sdpa_with_kv_cache.default",
     {Family::attention, Cost::two, false}},  // cache update, attention
    {"custom_sdpa.default", one(Family::attention)},
    {"update_cache.default", one(Family::attention)},
    {"update_cache_with_indices.default", one(Family::attention)},
    {"et_vk.sdpa.default", one(Family::attention)},
    {"et_vk.apply_rotary_emb.default", one(Family::rotary)},
    {"et_vk.apply_rotary_emb_hf.default", one(Family::rotary)},
    {"et_vk.apply_rotary_emb_interleaved.default", one(Family::rotary)},

    {"et_vk.linear_q4gsw.default", one(Family::linear)},
    {"et_vk.linear_dq8ca_q4gsw.default", one(Family::linear)},
    {"et_vk.linear_qcs4w.default", one(Family::linear)},
    {"et_vk.linear_q8ta_q8csw.default", one(Family::linear)},
    {"et_vk.linear_q8csw.default", one(Family::linear)},
    {"et_vk.q8ta_linear.default", one(Family::linear)},
    {"et_vk.q8ta_linear_gemv.default", one(Family::linear)},
    {"aten._weight_int8pack_mm.default", one(Family::linear)},
    {"aten.mm.default", one(Family::linear)},
    {"aten.bmm.default", one(Family::linear)},
    {"aten.addmm.default", one(Family::linear)},
    {"aten.linear.default", one(Family::linear)},

    {"et_vk.embedding_q4gsw.default", one(Family::embedding)},
    {"aten.embedding.default", one(Family::embedding)},

    {"et_vk.rms_norm.default", one(Family::norm)},
    {"aten.native_layer_norm.default", one(Family::norm)},
    {"aten.native_group_norm.default", {Family::norm, Cost::two, false}},  // moments, scaling
    {"aten._native_batch_norm_legit_no_training.default", one(Family::norm)},
    {"aten._softmax.default", one(Family::norm)},
    {"aten._log_softmax.default", one(Family::norm)},

    {"aten.add.*", one(Family::elementwise)},
    {"aten.sub.*", one(Family::elementwise)},
    {"aten.mul.*", one(Family::elementwise)},
    {"aten.div.*", one(Family::elementwise)},
    {"aten.pow.*", one(Family::elementwise)},
    {"aten.minimum.default", one(Family::elementwise)},
    {"aten.abs.default", one(Family::elementwise)},
    {"aten.exp.default", one(Family::elementwise)},
    {"aten.sqrt.default", one(Family::elementwise)},
    {"aten.rsqrt.default", one(Family::elementwise)},
    {"aten.sin.default", one(Family::elementwise)},
    {"aten.cos.default", one(Family::elementwise)},
    {"aten.tan.default", one(Family::elementwise)},
    {"aten.tanh.default", one(Family::elementwise)},
    {"aten.log10.default", one(Family::elementwise)},
    {"aten.round.default", one(Family::elementwise)},
    {"aten.neg.default", one(Family::elementwise)},
    {"aten.hardswish.default", one(Family::elementwise)},
    {"aten.hardsigmoid.default", one(Family::elementwise)},
    {"aten.hardshrink.default", one(Family::elementwise)},
    {"aten.clamp.default", one(Family::elementwise)},
    {"aten.hardtanh.default", one(Family::elementwise)},
    {"aten.relu.default", one(Family::elementwise)},
    {"aten.relu6.default", one(Family::elementwise)},
    {"aten.leaky_relu.default", one(Family::elementwise)},
    {"aten.sigmoid.default", one(Family::elementwise)},
    {"aten.gelu.default", one(Family::elementwise)},
    {"aten.eq.*", one(Family::elementwise)},
    {"aten.ne.*", one(Family::elementwise)},
    {"aten.le.*", one(Family::elementwise)},
    {"aten.ge.*", one(Family::elementwise)},
    {"aten.lt.*", one(Family::elementwise)},
    {"aten.gt.*", one(Family::elementwise)},
    {"aten.logical_*", one(Family::elementwise)},
    {"aten.bitwise_*", one(Family::elementwise)},
    {"aten.where.self", one(Family::elementwise)},

    {"aten.sum.dim_IntList", one(Family::reduction)},
    {"aten.mean.dim", one(Family::reduction)},
    {"aten.var.dim", one(Family::reduction)},
    {"aten.amax.default", one(Family::reduction)},
    {"aten.amin.default", one(Family::reduction)},
    {"aten.argmax.default", one(Family::reduction)},
    {"aten.argmin.default", one(Family::reduction)},

    {"aten.view_copy.default", kView},
    {"aten.squeeze_copy.dims", kView},
    {"aten.unsqueeze_copy.default", kView},
    {"aten.clone.default", kView},
    {"aten.alias_copy.default", kView},
    {"dim_order_ops._clone_dim_order.default", kView},
    {"dim_order_ops._to_dim_order_copy.default", one(Family::layout)},
    {"aten._to_copy.default", one(Family::layout)},
    {"aten.permute.default", one(Family::layout)},
    {"aten.permute_copy.default", one(Family::layout)},
    {"aten.slice_copy.Tensor", one(Family::layout)},
    {"aten.slice.Tensor", one(Family::layout)},
    {"aten.select_copy.int", one(Family::layout)},
    {"aten.select.int", one(Family::layout)},
    {"aten.cat.default", {Family::layout, Cost::one_per_input, false}},
    {"aten.split_with_sizes_copy.default", {Family::layout, Cost::one_per_output, false}},
    {"aten.expand_copy.default", one(Family::layout)},
    {"aten.repeat.default", one(Family::layout)},
    {"aten.repeat_interleave.self_int", one(Family::layout)},
    {"aten.flip.default", one(Family::layout)},
    {"aten.constant_pad_nd.default", one(Family::layout)},
    {"aten.pixel_shuffle.default", one(Family::layout)},
    {"aten.unfold_copy.default", one(Family::layout)},

    {"aten.full.default", one(Family::fill)},
    {"aten.full_like.default", one(Family::fill)},
    {"aten.zeros.default", one(Family::fill)},
    {"aten.zeros_like.default", one(Family::fill)},
    {"aten.ones.default", one(Family::fill)},
    {"aten.ones_like.default", one(Family::fill)},
    {"aten.scalar_tensor.default", one(Family::fill)},
    {"aten.arange.start_step", one(Family::fill)},

    {"aten.index.Tensor", one(Family::gather)},
    {"aten.index_select.default", one(Family::gather)},
    {"aten.gather.default", one(Family::gather)},

    {"aten.convolution.default", one(Family::spatial)},
    {"et_vk.conv_with_clamp.default", one(Family::spatial)},
    {"aten.max_pool2d_with_indices.default", one(Family::spatial)},
    {"aten.max_pool2d.default", one(Family::spatial)},
    {"aten.avg_pool2d.default", one(Family::spatial)},
    {"aten.upsample_nearest2d.vec", one(Family::spatial)},
    {"aten.upsample_bilinear2d.vec", one(Family::spatial)},
    {"aten.grid_sampler_2d.default", one(Family::spatial)},
    {"et_vk.grid_priors.default", one(Family::spatial)},

    {"torchao.choose_qparams_affine.default", one(Family::quantize)},
    {"quantized_decomposed.*", one(Family::quantize)},
    {"et_vk.q8ta_*", one(Family::quantize)},

    {"et_vk.linear_q4gsw_backward.default", one(Family::training)},
    {"et_vk.linear_dW.default", one(Family::training)},
    {"et_vk.q4gsw_requant.default", one(Family::training)},
    {"et_vk.adamw_step.default", one(Family::training)},
    {"et_vk.fused_ce.default", one(Family::training)},

    {"add", {Family::scalar, Cost::none, false}},
    {"sub", {Family::scalar, Cost::none, false}},
    {"mul", {Family::scalar, Cost::none, false}},
    {"floordiv", {Family::scalar, Cost::none, false}},
    {"sym_size.int", {Family::scalar, Cost::none, false}},
    {"et_vk.select_as_symint.default", {Family::scalar, Cost::none, false}},

    {"et_vk.prepack.default", {Family::prepack, Cost::none, false}},
};

}  // namespace

FamilyInfo family_info(Family family) {
  switch (family) {
    case Family::attention:
      return {"attention", "#ffe3b3", "#c77700"};
    case Family::rotary:
      return {"rotary", "#fff3c4", "#b59a00"};
    case Family::linear:
      return {"linear", "#cfe2ff", "#2f6fd0"};
    case Family::embedding:
      return {"embedding", "#d7f2e3", "#2c8a57"};
    case Family::norm:
      return {"norm", "#eadcf8", "#7c4dbd"};
    case Family::elementwise:
      return {"elementwise", "#f1f3f5", "#868e96"};
    case Family::reduction:
      return {"reduction", "#ffd9e2", "#c2395e"};
    case Family::gather:
      return {"gather", "#d7f2e3", "#2c8a57"};
    case Family::spatial:
      return {"spatial", "#ccefef", "#17808a"};
    case Family::quantize:
      return {"quantize", "#e0e7c8", "#6b7a1f"};
    case Family::training:
      return {"training", "#f3d9c9", "#a1552a"};
    case Family::layout:
      return {"layout", "#ffffff", "#adb5bd"};
    case Family::fill:
      return {"fill", "#ffffff", "#adb5bd"};
    case Family::scalar:
      return {"scalar", "#ffffff", "#ced4da"};
    case Family::prepack:
      return {"prepack", "#ffffff", "#ced4da"};
    case Family::unknown:
      return {"unknown", "#ffc9c9", "#e03131"};
  }
  return {"unknown", "#ffc9c9", "#e03131"};
}

OpInfo op_info(std::string_view name) {
  for (const Row& row : kRows) {
    const bool prefix = row.name.ends_with('*');
    if (prefix ? name.starts_with(row.name.substr(0, row.name.size() - 1)) : name == row.name) {
      return row.info;
    }
  }
  return {};
}

std::string_view short_op_name(std::string_view name) {
  const size_t last = name.rfind('.');
  if (last == std::string_view::npos || last == 0) {
    return name;
  }
  const std::string_view without_overload = name.substr(0, last);
  const size_t first = without_overload.rfind('.');
  return first == std::string_view::npos ? without_overload : without_overload.substr(first + 1);
}

}  // namespace ptero::inspect
