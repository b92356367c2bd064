# SPDX-License-Identifier: BSD-3-Clause
"""Dense products in float32."""

import torch
from torch import nn

from tools.export.case import Case, f32, once
from tools.export.modules import apply, each, fill, weight

# (M, K, N): multiples of the tiles, one less, one more, primes, size 1 on every side.
_SIZES = ((4, 16, 8), (1, 64, 1), (7, 1, 9), (1, 33, 37), (31, 67, 33), (33, 32, 65), (5, 128, 64))


class Linears(nn.Module):
    """One linear layer for every input; input k has the layer's K as its last dimension."""

    def __init__(self, *sizes: tuple[int, int], bias: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(k, n, bias=bias) for k, n in sizes)
        fill(self)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(layer(x) for layer, x in zip(self.layers, inputs))


class ConstantRight(nn.Module):
    """x @ constant, which keeps its [K, N] layout."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__()
        self.right = nn.Parameter(weight("right", k, n))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mm(x, self.right)


_LINEAR = ((64, 48), (33, 37), (1, 5), (67, 1), (32, 31))
_LINEAR_INPUTS = (f32(1, 7, 64), f32(1, 33), f32(3, 1), f32(2, 3, 67), f32(1, 1, 5, 32))

CASES = [
    Case(
        name="mm",
        module=each(torch.mm, 2),
        sequences=once(*(x for m, k, n in _SIZES for x in (f32(m, k), f32(k, n, slot=1)))),
        operators={"aten.mm.default": len(_SIZES)},
    ),
    Case(
        name="mm_constant",
        module=lambda: ConstantRight(48, 20),
        sequences=once(f32(5, 48)),
        operators={"aten.mm.default": 1},
    ),
    Case(
        name="bmm",
        module=each(torch.bmm, 2),
        sequences=once(
            *(f32(1, 3, 5), f32(1, 5, 7)),
            *(f32(4, 7, 16), f32(4, 16, 9)),
            *(f32(3, 1, 33), f32(3, 33, 1)),
        ),
        operators={"aten.bmm.default": 3},
    ),
    Case(
        name="matmul_rank4",
        module=apply(torch.matmul),
        sequences=once(f32(2, 3, 5, 8), f32(2, 3, 8, 7)),
        operators={"aten.view_copy.default": 3, "aten.bmm.default": 1},
    ),
    Case(
        name="matmul_broadcast",
        module=apply(torch.matmul),
        sequences=once(f32(2, 3, 5, 8), f32(8, 7)),
        operators={"aten.view_copy.default": 2, "aten.mm.default": 1},
    ),
    Case(
        name="addmm",
        module=each(lambda x, y, z: torch.addmm(x, y, z, beta=0.5, alpha=2), 3),
        sequences=once(
            *(f32(9), f32(5, 7), f32(7, 9)),
            *(f32(5, 9), f32(5, 7), f32(7, 9)),
        ),
        operators={"aten.addmm.default": 2},
    ),
    Case(
        name="linear",
        module=lambda: Linears(*_LINEAR, bias=False),
        sequences=once(*_LINEAR_INPUTS),
        operators={
            "aten.squeeze_copy.dims": 2,
            "aten.linear.default": 5,
            "aten.view_copy.default": 4,
        },
    ),
    Case(
        name="linear_bias",
        module=lambda: Linears(*_LINEAR, bias=True),
        sequences=once(*_LINEAR_INPUTS),
        operators={
            "aten.squeeze_copy.dims": 2,
            "aten.linear.default": 5,
            "aten.view_copy.default": 4,
        },
    ),
    Case(
        name="linear_tall",
        module=lambda: Linears((5, 3), bias=True),
        sequences=once(f32(1031, 5)),
        operators={"aten.linear.default": 1},
    ),
    Case(
        name="linear_llama_1b_down",
        module=lambda: Linears((8192, 64), bias=False),
        sequences=once(f32(3, 8192)),
        operators={"aten.linear.default": 1},
        atol=1e-3,
        rtol=1e-2,
        reason="sums of 8,192 products in float32, in an order that the kernel may choose",
        big=True,
    ),
]
