# SPDX-License-Identifier: BSD-3-Clause
"""Rotary position embeddings in their three forms, and rows of tables by index."""

from __future__ import annotations

import torch
from executorch.backends.vulkan import custom_ops_lib  # noqa: F401  (torch.ops.et_vk)
from torch import nn

from tools.export.case import Case, Dim, f32, i32, in_order, live, once, values
from tools.export.cases.attention import item, replay
from tools.export.modules import apply, weight


def rotate_pairs(q, k, cos, sin):
    """Llama: elements 2i and 2i + 1 turn together. The form that the exporter fuses."""

    shape = (1, q.shape[1], 1, q.shape[-1] // 2)
    cos, sin = cos.view(shape), sin.view(shape)
    q_re, q_im = q.reshape(*q.shape[:-1], -1, 2).unbind(-1)
    k_re, k_im = k.reshape(*k.shape[:-1], -1, 2).unbind(-1)
    q_out_re = q_re * cos - q_im * sin
    q_out_im = q_re * sin + q_im * cos
    k_out_re = k_re * cos - k_im * sin
    k_out_im = k_re * sin + k_im * cos
    q_out = torch.stack([q_out_re, q_out_im], -1).flatten(3)
    k_out = torch.stack([k_out_re, k_out_im], -1).flatten(3)
    return q_out, k_out


def _half_turned(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


def rotate_halves(q, k, cos, sin):
    """Hugging Face: elements i and i + n/2 of the first n turn together, the others stay."""
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    n = cos.shape[-1]
    q_turn, q_stay = q[..., :n], q[..., n:]
    k_turn, k_stay = k[..., :n], k[..., n:]
    q_out = torch.cat([(q_turn * cos) + (_half_turned(q_turn) * sin), q_stay], -1)
    k_out = torch.cat([(k_turn * cos) + (_half_turned(k_turn) * sin), k_stay], -1)
    return q_out, k_out


def angles(rows: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines [rows, width] of the usual angles, rounded so that CPUs agree on them."""
    exponent = torch.arange(width, dtype=torch.float64) / width
    angle = torch.outer(torch.arange(rows, dtype=torch.float64), 10000.0**-exponent)
    return tuple((f(angle) * 65536).round().div(65536).float() for f in (torch.cos, torch.sin))


class Rotary(nn.Module):
    """Tables in the graph, sliced at a position that is fed."""

    def __init__(self, rotate, rows: int, width: int, twice: bool) -> None:
        super().__init__()
        self.rotate = rotate
        for name, table in zip(("cos", "sin"), angles(rows, width)):
            self.register_buffer(name, torch.cat([table, table], -1) if twice else table)

    def forward(self, q, k, position):
        start, length = item(position), q.size(1)
        torch._check(start + length <= self.cos.size(0))
        rows = (table.narrow(0, start, length) for table in (self.cos, self.sin))
        return self.rotate(q, k, *rows)


class Indexed(nn.Module):
    """Tables in the graph, one row each taken by index: what a graph of fixed length does."""

    def __init__(self) -> None:
        super().__init__()
        cos, sin = angles(32, 8)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, q, k, position):
        return rotate_pairs(q, k, self.cos[position], self.sin[position])


class IndexTables(nn.Module):
    """A constant table and a computed one. Tables of higher ranks are indexed on the host."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", weight("a", 11))

    def forward(self, i, j):
        return self.a[i], (self.a + self.a)[j]


def _qk(width, *more):
    return lambda n: (
        f32(1, n, 4, width),
        f32(1, n, 2, width, slot=1),
        *(f32(n, m, low=-1, high=1, slot=2 + k) for k, m in enumerate(more)),
    )


def _at(width):
    return lambda n, at: (
        f32(1, n, 4, width),
        f32(1, n, 2, width, slot=1),
        values(torch.int64, [at]),
    )


_S = Dim("s", 13)
_LENGTHS = (5, 1, 8, 1, 13, 2)
_SLICED = ({1: _S}, {1: _S}, {})

CASES = [
    Case(
        name="rotary_pairs_live",
        module=apply(rotate_pairs),
        sequences=live(_qk(16, 8, 8)),
        dynamic=({1: _S}, {1: _S}, {0: _S}, {0: _S}),
        operators={"et_vk.apply_rotary_emb.default": 1},
    ),
    Case(
        name="rotary_pairs_at_position",
        module=lambda: Rotary(rotate_pairs, 40, 8, twice=False),
        sequences=in_order(*replay(_at(16), _LENGTHS)),
        dynamic=_SLICED,
        operators={
            "et_vk.prepack.default": 2,
            "sym_size.int": 1,
            "et_vk.select_as_symint.default": 1,
            "add": 1,
            "aten.slice_copy.Tensor": 2,
            "et_vk.apply_rotary_emb.default": 1,
        },
    ),
    Case(
        name="rotary_pairs_indexed",
        module=Indexed,
        sequences=in_order(*(_at(16)(1, at) for at in (0, 1, 31))),
        operators={
            "et_vk.prepack.default": 2,
            "aten.index.Tensor": 2,
            "et_vk.apply_rotary_emb.default": 1,
        },
    ),
    Case(
        name="rotary_halves_live",
        module=apply(rotate_halves),
        sequences=live(_qk(16, 16, 16)),
        dynamic=({1: _S}, {1: _S}, {0: _S}, {0: _S}),
        operators={"et_vk.apply_rotary_emb_hf.default": 1},
    ),
    Case(
        name="rotary_halves_at_position",
        module=lambda: Rotary(rotate_halves, 40, 8, twice=True),
        sequences=in_order(*replay(_at(16), _LENGTHS)),
        dynamic=_SLICED,
        operators={
            "et_vk.prepack.default": 2,
            "et_vk.select_as_symint.default": 1,
            "et_vk.apply_rotary_emb_hf.default": 1,
        },
    ),
    Case(
        name="rotary_halves_partial",
        # 12 of 16 elements turn.
        module=lambda: Rotary(rotate_halves, 40, 6, twice=True),
        sequences=in_order(*replay(_at(16), _LENGTHS)),
        dynamic=_SLICED,
        operators={
            "et_vk.prepack.default": 2,
            "et_vk.select_as_symint.default": 1,
            "et_vk.apply_rotary_emb_hf.default": 1,
        },
    ),
    Case(
        name="rotary_interleaved_live",
        module=apply(lambda x, freqs: torch.ops.et_vk.apply_rotary_emb_interleaved(x, freqs)),
        sequences=live(lambda n: (f32(1, n, 12), f32(n, 12, low=-1, high=1, slot=1))),
        dynamic=({1: _S}, {0: _S}),
        operators={"et_vk.apply_rotary_emb_interleaved.default": 1},
    ),
    Case(
        name="index_tables",
        module=IndexTables,
        sequences=once(values(torch.int64, [10, 0, 7, 7]), i32(2, 3, low=0, high=10)),
        operators={"et_vk.prepack.default": 1, "aten.index.Tensor": 2, "aten.add.Tensor": 1},
    ),
    Case(
        name="index_live",
        module=apply(lambda x, i: x[i] * 2),
        sequences=live(lambda n: (f32(11), i32(n, low=0, high=10))),
        dynamic=({}, {0: _S}),
        operators={
            "et_vk.prepack.default": 1,
            "aten.index.Tensor": 1,
            "dim_order_ops._to_dim_order_copy.default": 1,
            "aten.clone.default": 1,
            "aten.mul.Tensor": 1,
        },
    ),
]
