# SPDX-License-Identifier: BSD-3-Clause
# size: a table of cases: one after the other, each a few lines.
"""Attention over a cache that lives in the graph, cache updates alone, and plain attention."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from executorch.backends.vulkan import custom_ops_lib  # noqa: F401  (torch.ops.et_vk)
from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401  (torch.ops.llama)
from torch import nn

from tools.export.case import Case, Control, Dim, Step, f32, i64, in_order, live, once, values
from tools.export.modules import fill


def item(position: torch.Tensor) -> int:
    """A position that the exporter keeps as a symbolic integer."""
    start = position[0].item()
    torch._check_is_size(start)
    return start


def visible(start: int, queries: int, keys: int) -> torch.Tensor:
    """Query s sees the keys up to start + s."""
    return torch.arange(keys) <= torch.arange(queries)[:, None] + start


def attend(q, k, v, mask, scale=None):
    """[batch, sequence, heads, D], the query heads a multiple of the others, in any precision."""
    repeat = q.size(2) // k.size(2)
    k, v = (x.repeat_interleave(repeat, 2).transpose(1, 2) for x in (k, v))
    q = q.transpose(1, 2)
    return F.scaled_dot_product_attention(q, k, v, mask, scale=scale).transpose(1, 2)


class Cache(nn.Module):
    """Keys and values of all steps so far, and attention over them.

    `mode` chooses what evaluates it: "fused" (the operators that the exporter lowers), "exact"
    (the same in plain PyTorch), or a fault: "pinned" ignores the position that is fed, "forgets"
    starts each step with an empty cache.
    """

    def __init__(
        self,
        heads: int,
        width: int,
        capacity: int,
        fuse: str = "custom_sdpa",
        scale: float | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, capacity, heads, width))
        self.register_buffer("values", torch.zeros(1, capacity, heads, width))
        self.fuse = fuse
        self.scale = scale
        self.mode = "fused"

    def forward(self, q, k, v, start):
        if self.mode != "fused":
            return self._plain(q, k, v, start)
        if self.fuse == "sdpa_with_kv_cache":
            return torch.ops.llama.sdpa_with_kv_cache(
                q, k, v, self.keys, self.values, start, k.size(1), None, 0.0, True, self.scale
            )
        torch.ops.llama.update_cache(k, self.keys, start)
        torch.ops.llama.update_cache(v, self.values, start)
        return torch.ops.llama.custom_sdpa(
            q, self.keys, self.values, start, None, 0.0, True, self.scale
        )

    def _plain(self, q, k, v, start):
        if self.mode == "pinned":
            start = 0
        if self.mode == "forgets":
            self.keys.zero_()
            self.values.zero_()
        end = start + k.size(1)
        self.keys[:, start:end] = k
        self.values[:, start:end] = v
        mask = visible(start, q.size(1), end)
        return attend(q, self.keys[:, :end], self.values[:, :end], mask, self.scale)


def evaluated_as(mode: str):
    """A reference of a case: every cache in the module is evaluated as `mode` says."""

    def reference(module: nn.Module) -> nn.Module:
        for part in module.modules():
            if isinstance(part, (Cache, MaskedCache, KeepCache)):
                part.mode = mode
        return module.double()

    return reference


exact = evaluated_as("exact")


def controls(of: str, prepare=lambda module: module) -> dict[str, Control]:
    """Two faults of caches; `prepare` turns the module into what float64 can evaluate."""
    return {
        "control: position pinned": Control(of, lambda m: evaluated_as("pinned")(prepare(m))),
        "control: cache emptied before each step": Control(
            of, lambda m: evaluated_as("forgets")(prepare(m))
        ),
    }


class Attention(nn.Module):
    """Everything is fed but the cache."""

    def __init__(self, cache: Cache) -> None:
        super().__init__()
        self.cache = cache

    def forward(self, q, k, v, position):
        return self.cache(q, k, v, item(position))


class FixedPosition(nn.Module):
    """The position is a constant of the graph."""

    def __init__(self, cache: Cache, start: int) -> None:
        super().__init__()
        self.cache = cache
        self.start = start

    def forward(self, q, k, v):
        return self.cache(q, k, v, self.start)


class Decoder(nn.Module):
    """Only tokens and their position are fed: projections and cache are in the graph."""

    def __init__(self, vocabulary: int, heads: int, groups: int, width: int, capacity: int) -> None:
        super().__init__()
        dim = heads * width
        self.tokens = nn.Embedding(vocabulary, dim)
        self.q = nn.Linear(dim, dim, bias=False)
        self.k = nn.Linear(dim, groups * width, bias=False)
        self.v = nn.Linear(dim, groups * width, bias=False)
        self.o = nn.Linear(dim, dim, bias=False)
        fill(self, scale=0.5)
        self.cache = Cache(groups, width, capacity)
        self.width = width

    def forward(self, tokens, position):
        x = self.tokens(tokens)
        q, k, v = (f(x).view(1, x.size(1), -1, self.width) for f in (self.q, self.k, self.v))
        return x + self.o(self.cache(q, k, v, item(position)).reshape(1, x.size(1), -1))


class FeedCache(nn.Module):
    """Rows put into a cache that is fed, at fixed positions."""

    def forward(self, value, cache):
        torch.ops.llama.update_cache(value, cache, 2)
        return cache * 1.0


class KeepCache(nn.Module):
    """Rows put into a cache of the graph at a position that is fed; the whole cache comes out."""

    def __init__(self, capacity: int, heads: int, width: int) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(1, capacity, heads, width))
        self.mode = "fused"

    def forward(self, value, position):
        start = item(position)
        if self.mode == "fused":
            torch.ops.llama.update_cache(value, self.cache, start)
            return self.cache * 2.0
        if self.mode == "pinned":
            start = 0
        if self.mode == "forgets":
            self.cache.zero_()
        self.cache[:, start : start + value.size(1)] = value
        return self.cache * 2.0


class MaskedCache(nn.Module):
    """A mask over the whole cache is fed and added to the scores; nothing else hides a key.

    The scale is explicit, because executorch 1.4.1 cannot match custom_sdpa when all of its last
    arguments have their default values.
    """

    def __init__(self, heads: int, width: int, capacity: int) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, capacity, heads, width))
        self.register_buffer("values", torch.zeros(1, capacity, heads, width))
        self.mode = "fused"

    def forward(self, q, k, v, position, mask):
        start = item(position)
        if self.mode == "fused":
            torch.ops.llama.update_cache(k, self.keys, start)
            torch.ops.llama.update_cache(v, self.values, start)
            return torch.ops.llama.custom_sdpa(
                q, self.keys, self.values, start, mask, 0.0, False, 0.25
            )
        self.keys[:, start : start + k.size(1)] = k
        self.values[:, start : start + k.size(1)] = v
        return attend(q, self.keys, self.values, mask, 0.25)


class PlainAttention(nn.Module):
    """et_vk.sdpa: heads before sequence, no cache, an optional mask that is added."""

    def __init__(self, scale: float | None = None) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, q, k, v, mask=None):
        return torch.ops.et_vk.sdpa(q, k, v, mask, self.scale)


def _plain_attention(module):
    return lambda q, k, v, mask=None: F.scaled_dot_product_attention(
        q, k, v, mask, scale=module.scale
    )


def _masked_steps(lengths: Sequence[int], geometry) -> tuple[Step, ...]:
    """Sliding windows of three keys, in a mask as wide as the cache."""
    capacity = geometry[3]
    steps = []
    for step in replay(_qkv(geometry), lengths):
        start, length = step[3].values[0], step[0].shape[1]
        mask = [
            0.25 * (key % 3) if row + start - 3 < key <= row + start else -30000.0
            for row in range(length)
            for key in range(capacity)
        ]
        steps.append((*step, values(torch.float32, mask, length, capacity)))
    return tuple(steps)


def _qkv(geometry, low=-4, high=4, start=None):
    heads, groups, width, _ = geometry

    def make(length: int, position: int) -> Step:
        shape = (1, length)
        at = (values(torch.int64, [position]),) if start is None else ()
        return (
            f32(*shape, heads, width, low=low, high=high),
            f32(*shape, groups, width, slot=1, low=low, high=high),
            f32(*shape, groups, width, slot=2, low=low, high=high),
            *at,
        )

    return make


def replay(make, lengths: Sequence[int], start: int = 0) -> tuple[Step, ...]:
    """Steps of these lengths, each at the position where the one before it ended."""
    seen: collections.Counter[int] = collections.Counter()
    steps = []
    for length in lengths:
        shift = 10 * seen[length]
        seen[length] += 1
        steps.append(
            tuple(
                x if x.values is not None else dataclasses.replace(x, slot=x.slot + shift)
                for x in make(length, start)
            )
        )
        start += length
    return tuple(steps)


def _replayed(name, geometry, lengths, bound, fuse, big=False, scale=None, **more):
    heads, groups, width, capacity = geometry
    s = Dim("s", bound)
    make = _qkv(geometry, -2, 2) if big else _qkv(geometry)  # wide heads make sharp scores
    operators = {"et_vk.select_as_symint.default": 1, "sdpa_with_kv_cache.default": 1}
    if fuse == "sdpa_with_kv_cache":
        operators["sym_size.int"] = 1  # the argument seq_len
    sequences = {"in order": replay(make, lengths)}
    if not big:
        # A second text in the same cache: what the first left behind it is not to be seen.
        sequences["started again"] = replay(make, lengths[:4]) + replay(make, lengths[1:4])
    return Case(
        name=name,
        module=lambda: Attention(Cache(groups, width, capacity, fuse, scale)),
        sequences=sequences,
        controls=controls("in order"),
        dynamic=({1: s}, {1: s}, {1: s}, {}),
        reference=exact,
        stateful=True,
        big=big,
        operators=operators,
        **more,
    )


_S, _T = Dim("s", 13), Dim("t", 15, 3)

CASES = [
    _replayed("attention_8_4", (8, 4, 4, 16), (3, 1, 1, 5, 1, 1, 2), 8, "custom_sdpa"),
    _replayed("attention_6_2", (6, 2, 8, 16), (3, 1, 1, 5, 1, 1), 8, "sdpa_with_kv_cache"),
    Case(
        name="attention_decoder",
        module=lambda: Decoder(29, 6, 2, 8, 24),
        sequences={
            "in order": replay(
                lambda n, at: (i64(1, n, low=0, high=28), values(torch.int64, [at])),
                (4, 1, 1, 7, 1, 1),
            )
        },
        controls=controls("in order"),
        dynamic=({1: Dim("s", 9)}, {}),
        reference=exact,
        stateful=True,
        operators={
            "sym_size.int": 1,
            "aten.embedding.default": 1,
            "aten.view_copy.default": 8,
            "aten.linear.default": 4,
            "et_vk.select_as_symint.default": 1,
            "sdpa_with_kv_cache.default": 1,
            "aten.add.Tensor": 1,
        },
    ),
    Case(
        name="attention_fixed_position",
        module=lambda: FixedPosition(Cache(2, 8, 16), 2),
        sequences=in_order(*replay(_qkv((6, 2, 8, 16), start=2), (5, 5))),
        reference=exact,
        stateful=True,
        operators={"sdpa_with_kv_cache.default": 1},
    ),
    Case(
        name="update_cache_fixed_position",
        module=FeedCache,
        sequences=once(f32(1, 3, 2, 8), f32(1, 16, 2, 8, slot=1)),
        reference=lambda module: lambda value, cache: torch.cat(
            [cache[:, :2], value, cache[:, 5:]], 1
        ),
        operators={"et_vk.prepack.default": 1, "update_cache.default": 1, "aten.mul.Tensor": 1},
        host_operators={"aten::copy_": 1},
        reason="the host writes the caller's cache back",
    ),
    Case(
        name="update_cache",
        module=lambda: KeepCache(16, 2, 8),
        sequences={
            "in order": replay(
                lambda n, at: (f32(1, n, 2, 8), values(torch.int64, [at])), (3, 1, 5, 1, 2)
            )
        },
        dynamic=({1: Dim("s", 8)}, {}),
        controls=controls("in order"),
        reference=exact,
        stateful=True,
        operators={
            "et_vk.prepack.default": 2,
            "et_vk.select_as_symint.default": 1,
            "update_cache.default": 1,
            "aten.mul.Tensor": 1,
        },
    ),
    Case(
        name="attention_mask",
        module=lambda: MaskedCache(2, 8, 12),
        sequences={"in order": _masked_steps((4, 1, 3, 1), (4, 2, 8, 12))},
        dynamic=(*({1: Dim("s", 6)},) * 3, {}, {0: Dim("s", 6)}),
        reference=exact,
        stateful=True,
        operators={"et_vk.select_as_symint.default": 1, "sdpa_with_kv_cache.default": 1},
    ),
    Case(
        name="sdpa",
        module=PlainAttention,
        sequences=once(f32(2, 3, 7, 16), f32(2, 3, 11, 16, slot=1), f32(2, 3, 11, 16, slot=2)),
        reference=_plain_attention,
        operators={"et_vk.sdpa.default": 1},
    ),
    Case(
        name="sdpa_mask_scale_live",
        module=lambda: PlainAttention(scale=0.125),
        sequences=live(
            lambda n: (
                f32(1, 4, n, 8),
                f32(1, 4, n + 2, 8, slot=1),
                f32(1, 4, n + 2, 8, slot=2),
                f32(1, 4, n, n + 2),
            )
        ),
        dynamic=({2: _S}, {2: _T}, {2: _T}, {2: _S, 3: _T}),
        reference=_plain_attention,
        operators={"et_vk.sdpa.default": 1},
    ),
    Case(
        name="attention_half",
        module=lambda: Attention(Cache(4, 4, 16)),
        sequences={"in order": replay(_qkv((8, 4, 4, 16), -1, 1), (3, 1, 1, 5, 1, 1, 2))},
        controls=controls("in order"),
        dynamic=({1: Dim("s", 8)}, {1: Dim("s", 8)}, {1: Dim("s", 8)}, {}),
        reference=exact,
        stateful=True,
        options={"force_fp16": True},
        atol=2e-3,
        rtol=1e-2,
        reason="queries, keys, values and the cache are half precision inside the graph",
        operators={"et_vk.select_as_symint.default": 1, "sdpa_with_kv_cache.default": 1},
    ),
    _replayed("attention_scale", (4, 4, 32, 16), (4, 1, 2), 8, "custom_sdpa", scale=0.5),
    *(
        _replayed(name, geometry, lengths, bound, "custom_sdpa", big=True)
        for name, geometry, lengths, bound in (
            ("attention_24_8_llama_3b", (24, 8, 128, 256), (111, 1, 1, 1, 57, 1, 1), 128),
            ("attention_16_8_qwen3", (16, 8, 128, 64), (17, 1), 31),
        )
    ),
]
