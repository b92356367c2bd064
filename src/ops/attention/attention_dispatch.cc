// SPDX-License-Identifier: BSD-3-Clause
// Attention as dispatches, by one of several routes.
#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "ops/attention/attention_call.h"
#include "ops/attention/attention_matrix.wgsl.h"
#include "ops/attention/attention_merge.wgsl.h"
#include "ops/attention/attention_rows.wgsl.h"
#include "ops/attention/attention_scores.wgsl.h"
#include "ops/attention/attention_softmax.wgsl.h"
#include "ops/attention/attention_split.wgsl.h"
#include "ops/attention/attention_tiles.wgsl.h"
#include "ops/attention/attention_weigh.wgsl.h"
#include "ops/common/adapter_routes.h"
#include "ops/common/kernel_types.h"

namespace ptero::ops {
namespace {

using graph::BufferRef;
using graph::OpCall;

constexpr uint32_t kGroup = 64;      // as in the kernels
constexpr uint32_t kTile = 32;       // queries of a workgroup of attention_tiles, if not asked for
constexpr uint32_t kSplitRows = 8;   // and at most of attention_split
constexpr uint32_t kSplitDim = 256;  // the largest head of attention_split
constexpr uint32_t kMaxSplits = kGroup;
constexpr uint64_t kWorkgroups = 512;  // that keep a large GPU busy
constexpr uint32_t kRowsDim = 512;     // the largest head of attention_rows
constexpr uint64_t kFewQueries = 16;   // of a head of k: worth splitting the keys

// What the kernels share.
struct Common {
  const Attention& attention;
  std::string q;
  std::string kv;
  gpu::FeatureSet features;
  BufferRef mask;
  BufferRef slots;

  std::string prelude(std::string_view y) const {
    return fmt::format("alias T = {};\nalias C = {};\nalias Y = {};\nconst kDim4 = {}u;\n", q, kv,
                       y, attention.dim / 4);
  }
  std::vector<gpu::OverrideValue> overrides(bool with_mask = true) const {
    std::vector<gpu::OverrideValue> values = {
        {"causal", attention.causal ? 1.0 : 0.0},
        {"positioned", attention.position ? 1.0 : 0.0},
    };
    if (with_mask) {
      values.push_back({"masked", attention.mask ? 1.0 : 0.0});
    }
    return values;
  }
  template <typename Params>
  Params params(uint32_t splits = 1) const {
    return Params{.rows = attention.rows,
                  .heads = attention.heads,
                  .group = attention.group,
                  .keys = attention.keys,
                  .q_row = attention.q_row / 4,
                  .q_head = attention.q_head / 4,
                  .kv_row = attention.kv_row / 4,
                  .kv_head = attention.kv_head / 4,
                  .mask_row = attention.mask_row,
                  .mask_head = attention.mask_head,
                  .slot = attention.position ? attention.position->index : 0,
                  .splits = splits,
                  .scale = static_cast<float>(attention.scale)};
  }
  std::vector<BufferRef> inputs(const BufferRef& y) const {
    return {attention.q, attention.k, attention.v, mask, slots, y};
  }
  // x of a grid that has a workgroup for each kGroup keys.
  std::optional<graph::SlotGrid> live_keys() const {
    if (!attention.position) {
      return std::nullopt;
    }
    return graph::SlotGrid{
        .axis = 0, .slot = *attention.position, .add = attention.rows, .divide = kGroup};
  }
};

Result<gpu::Grid> fold(const OpCall& op, uint64_t workgroups) {
  const auto grid = graph::fold_grid(workgroups, op.device().limits);
  PTERO_REJECT_IF(!grid, unsupported, "Number of workgroups ({}) exceeds what a grid holds.",
                  workgroups);
  return *grid;
}

Status by_rows(OpCall& op, const Common& common) {
  const Attention& attention = common.attention;
  const uint32_t wg_size = op.device().is_software ? 8 : kGroup;
  const uint64_t blocks = ceil_div<uint64_t>(attention.queries() / attention.heads, wg_size);
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, fold(op, blocks * attention.heads));
  auto overrides = common.overrides();
  overrides.push_back({"wg_size", static_cast<double>(wg_size)});
  return op.dispatch(
      {{&wgsl::kAttentionRows, common.prelude(common.q), std::move(overrides), common.features},
       common.inputs(attention.y),
       grid},
      common.params<wgsl::AttentionRowsParams>());
}

// How attention_matrix divides its work.
struct AttentionTile {
  gpu::MatrixShape matrix;
  uint32_t lanes;      // of a subgroup
  uint32_t subgroups;  // that do not share queries
  uint32_t split;      // that do

  uint32_t queries() const { return subgroups * matrix.m; }
};

// Empty where the device has no matrix units, or heads do not fit them.
std::optional<AttentionTile> matrix_tile(const OpCall& op, const Attention& attention) {
  constexpr uint32_t kKeys = 32;      // of a tile, as in the kernel
  constexpr uint32_t kMostSums = 8;   // matrices of a subgroup for y
  constexpr uint64_t kEnough = 128;   // workgroups that keep a GPU busy
  constexpr uint32_t kAlignment = 4;  // of workgroup memory behind the tile, in words
  const graph::DeviceFacts& device = op.device();
  const gpu::MatrixShape* matrix = half_matrix(device);
  const uint32_t dim = attention.dim;
  if (matrix == nullptr || matrix->n % 8 != 0 || matrix->k % 8 != 0 || dim % matrix->n != 0 ||
      dim % matrix->k != 0) {
    return std::nullopt;
  }
  const uint32_t lanes = device.subgroup_max_size;
  const uint32_t chunks = dim / 8;
  const uint32_t blocks = dim / matrix->n;
  const uint32_t most_threads =
      std::min(device.limits.max_invocations_per_workgroup, device.limits.max_workgroup_size_x);
  for (const uint32_t queries : {64u, 32u}) {
    for (const uint32_t split : {2u, 1u}) {
      const AttentionTile tile{*matrix, lanes, queries / matrix->m, split};
      const uint32_t threads = tile.subgroups * split * lanes;
      const uint32_t words = 4 * ((queries + 2 * kKeys) * chunks + queries * (kKeys / 8)) +
                             queries * kKeys + queries + kAlignment;
      const bool divides = lanes * split % matrix->m == 0 &&
                           lanes * split / matrix->m <= kKeys / 8 && blocks % split == 0 &&
                           blocks / split <= kMostSums && kKeys * chunks % threads == 0;
      const bool fits =
          4 * words <= device.limits.max_workgroup_storage_size && threads <= most_threads;
      const uint64_t tiles = ceil_div<uint64_t>(attention.queries() / attention.heads, queries);
      if (divides && fits && (queries == 32 || tiles * attention.heads >= kEnough)) {
        return tile;
      }
    }
  }
  return std::nullopt;
}

Status by_matrices(OpCall& op, const Common& common) {
  const Attention& attention = common.attention;
  const AttentionTile tile = *matrix_tile(op, attention);
  const uint64_t blocks = ceil_div<uint64_t>(attention.queries() / attention.heads, tile.queries());
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, fold(op, blocks * attention.heads));
  const std::string prelude = fmt::format(
      "{}const kM = {}u;\nconst kN = {}u;\nconst kK = {}u;\nconst kLanes = {}u;\n"
      "const kSubgroups = {}u;\nconst kSplit = {}u;\n",
      common.prelude(common.q), tile.matrix.m, tile.matrix.n, tile.matrix.k, tile.lanes,
      tile.subgroups, tile.split);
  return op.dispatch(
      {{&wgsl::kAttentionMatrix, prelude, common.overrides(), common.features | kMatrixFeatures},
       common.inputs(attention.y),
       grid},
      common.params<wgsl::AttentionMatrixParams>());
}

Status by_tiles(OpCall& op, const Common& common) {
  const Attention& attention = common.attention;
  const uint32_t asked = op.device().options.sdpa_query_tile;
  const uint32_t tile = asked != 0 ? asked : kTile;
  const uint64_t blocks = ceil_div<uint64_t>(attention.queries() / attention.heads, tile);
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, fold(op, blocks * attention.heads));
  return op.dispatch({{&wgsl::kAttentionTiles,
                       fmt::format("{}const kEach = {}u;\n", common.prelude(common.q), tile / 8),
                       common.overrides(), common.features},
                      common.inputs(attention.y),
                      grid},
                     common.params<wgsl::AttentionTilesParams>());
}

// Queries of a workgroup, and workgroups for one split.
uint32_t split_rows(const Attention& attention) {
  const uint64_t queries = attention.queries() / attention.heads;
  return static_cast<uint32_t>(std::min<uint64_t>(std::bit_ceil(queries), kSplitRows));
}
uint64_t split_workgroups(const Attention& attention) {
  return attention.heads *
         ceil_div<uint64_t>(attention.queries() / attention.heads, split_rows(attention));
}

Status by_split(OpCall& op, const Common& common) {
  const Attention& attention = common.attention;
  const uint64_t workgroups = split_workgroups(attention);
  const uint64_t tiles = ceil_div(attention.keys, kGroup);
  const auto splits = static_cast<uint32_t>(
      std::min(tiles, std::clamp<uint64_t>(kWorkgroups / workgroups, 1, kMaxSplits)));
  const bool parts = splits > 1;
  BufferRef target(attention.y);
  if (parts) {
    const uint64_t bytes = attention.queries() * splits * (attention.dim / 4 + 1) * 16;
    PTERO_ASSIGN_OR_RETURN(target, op.scratch(bytes));
  }
  auto overrides = common.overrides();
  overrides.push_back({"parts", parts ? 1.0 : 0.0});
  const std::string prelude = fmt::format(
      "{}const kRows = {}u;\n", common.prelude(parts ? "f32" : common.q), split_rows(attention));
  PTERO_RETURN_IF_ERROR(
      op.dispatch({{&wgsl::kAttentionSplit, prelude, std::move(overrides), common.features},
                   common.inputs(target),
                   {splits, static_cast<uint32_t>(workgroups), 1},
                   common.live_keys()},
                  common.params<wgsl::AttentionSplitParams>(splits)));
  if (!parts) {
    return ok_status();
  }
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, fold(op, attention.queries()));
  return op.dispatch(
      {{&wgsl::kAttentionMerge, common.prelude(common.q), common.overrides(false), common.features},
       {target, common.slots, attention.y},
       grid},
      common.params<wgsl::AttentionMergeParams>(splits));
}

uint64_t score_bytes(const Attention& attention) {
  return attention.queries() * attention.keys * 4;
}

Status materialized(OpCall& op, const Common& common) {
  const Attention& attention = common.attention;
  PTERO_ASSIGN_OR_RETURN(const BufferRef scores,
                         op.scratch(std::max<uint64_t>(score_bytes(attention), 4)));
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid queries, fold(op, attention.queries()));
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid fours, linear_grid(op, attention.q.numel() / 4));
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid keys, fold(op, ceil_div(attention.keys, kGroup)));
  PTERO_REJECT_IF(keys.y != 1, unsupported, "Number of keys ({}) exceeds what a grid holds.",
                  attention.keys);
  PTERO_RETURN_IF_ERROR(op.dispatch(
      {{&wgsl::kAttentionScores, common.prelude("f32"), common.overrides(), common.features},
       {attention.q, attention.k, common.mask, common.slots, scores},
       {keys.x, queries.x, queries.y},
       common.live_keys()},
      common.params<wgsl::AttentionScoresParams>()));
  PTERO_RETURN_IF_ERROR(op.dispatch({{&wgsl::kAttentionSoftmax, "", common.overrides(false), {}},
                                     {common.slots, scores},
                                     queries},
                                    common.params<wgsl::AttentionSoftmaxParams>()));
  return op.dispatch(
      {{&wgsl::kAttentionWeigh, common.prelude(common.q), common.overrides(false), common.features},
       {scores, attention.v, common.slots, attention.y},
       fours},
      common.params<wgsl::AttentionWeighParams>());
}

AttentionRoute wanted_route(std::string_view name) {
  return name == "rows"           ? AttentionRoute::rows
         : name == "split"        ? AttentionRoute::split
         : name == "tiles"        ? AttentionRoute::tiles
         : name == "matrix"       ? AttentionRoute::matrix
         : name == "materialized" ? AttentionRoute::materialized
                                  : AttentionRoute::automatic;
}

AttentionRoute choose(const OpCall& op, const Attention& attention) {
  const AttentionRoute wanted = wanted_route(op.device().options.sdpa_route);
  if (wanted != AttentionRoute::automatic) {
    return wanted;
  }
  const bool few = attention.rows == 1 || attention.rows * attention.group <= kFewQueries;
  // Single precision stays so, unless the program or the user asks for less.
  const bool half = attention.q.dtype == pte::GraphDtype::float16 ||
                    op.device().options.enable_f16_gemm.value_or(false);
  const Work work = few    ? Work::attention_few
                    : half ? Work::attention_many_half
                           : Work::attention_many;
  return wanted_route(route_for(work, op.device()).route);
}

// Tiles serve everything.
bool serves(const OpCall& op, const Attention& attention, AttentionRoute route) {
  const gpu::Limits& limits = op.device().limits;
  switch (route) {
    case AttentionRoute::rows:
      return attention.dim <= kRowsDim;
    case AttentionRoute::split:
      return attention.dim <= kSplitDim && attention.keys > 0 &&
             split_workgroups(attention) <= limits.max_workgroups_per_dimension;
    case AttentionRoute::matrix:
      return attention.keys > 0 && matrix_tile(op, attention).has_value();
    case AttentionRoute::materialized:
      return score_bytes(attention) <= limits.max_storage_binding_size &&
             ceil_div(attention.keys, kGroup) <= limits.max_workgroups_per_dimension;
    case AttentionRoute::automatic:
    case AttentionRoute::tiles:
      break;
  }
  return true;
}

}  // namespace

Status dispatch_attention(OpCall& op, const Attention& attention) {
  PTERO_REJECT_IF(attention.dim % 4 != 0, unsupported,
                  "Number of elements ({}) of a head is not a multiple of 4.", attention.dim);
  PTERO_REJECT_IF(!attention.q.is_float() || !attention.k.is_float(), unsupported,
                  "Element type ({}) of tensor {} has no kernel in this operator.",
                  pte::name_of(attention.q.is_float() ? attention.k.dtype : attention.q.dtype),
                  attention.q.is_float() ? attention.k.id : attention.q.id);
  PTERO_RETURN_IF_ERROR(require_same_type(attention.q, attention.y));
  PTERO_ASSIGN_OR_RETURN(const ElementType q, element_type(attention.q));
  PTERO_ASSIGN_OR_RETURN(const ElementType kv, element_type(attention.k));
  const uint64_t limit = op.device().limits.max_storage_binding_size;
  for (const graph::TensorRef* tensor : {&attention.q, &attention.k}) {
    PTERO_REJECT_IF(tensor->bytes() > limit, unsupported,
                    "Size of tensor {} ({} bytes) exceeds a binding of this adapter ({} bytes).",
                    tensor->id, tensor->bytes(), limit);
  }
  if (attention.y.numel() == 0) {
    return ok_status();
  }
  const Common common{.attention = attention,
                      .q = std::string(q.name),
                      .kv = std::string(kv.name),
                      .features = q.features | kv.features,
                      .mask = attention.mask.value_or(attention.q),
                      .slots = attention.position ? op.slots() : BufferRef(attention.q)};
  AttentionRoute route = choose(op, attention);
  if (!serves(op, attention, route)) {
    route = AttentionRoute::tiles;
  }
  switch (route) {
    case AttentionRoute::rows:
      return by_rows(op, common);
    case AttentionRoute::split:
      return by_split(op, common);
    case AttentionRoute::matrix:
      return by_matrices(op, common);
    case AttentionRoute::materialized:
      return materialized(op, common);
    case AttentionRoute::automatic:
    case AttentionRoute::tiles:
      break;
  }
  return by_tiles(op, common);
}

}  // namespace ptero::ops
