# SPDX-License-Identifier: BSD-3-Clause
"""Integers that are read from tensors or from live lengths, and what they feed."""

from __future__ import annotations

import torch
from torch import nn

from tools.export.case import Case, Dim, f32, i64, in_order, live, values
from tools.export.modules import apply, weight


class Table(nn.Module):
    """Rows [position, position + length) of a constant table, added to what is fed."""

    def __init__(self, index: int = 0) -> None:
        super().__init__()
        self.register_buffer("table", weight("table", 24, 6))
        self.index = index

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        start = position[self.index].item()
        torch._check_is_size(start)
        torch._check(start + x.size(0) <= 24)
        return x + self.table.narrow(0, start, x.size(0))


class Window(nn.Module):
    """A window of an input, its bounds computed from two positions."""

    def forward(self, x: torch.Tensor, bounds: torch.Tensor) -> torch.Tensor:
        start, length = bounds[0].item(), bounds[1].item()
        torch._check_is_size(start)
        torch._check_is_size(length)
        torch._check(length >= 1)
        torch._check(start + length <= x.size(0))
        return x.narrow(0, start, length) * 2.0


class Computed(nn.Module):
    """The position is the result of an operator of the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", weight("table", 24, 6))

    def forward(self, x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        start = (a + b)[1].item()
        torch._check_is_size(start)
        torch._check(start + x.size(0) <= 24)
        return x + self.table.narrow(0, start, x.size(0))


def _at(*position):
    return values(torch.int64, position)


CASES = [
    Case(
        name="symint_from_input",
        module=Table,
        sequences=in_order(
            *((f32(n, 6), _at(p)) for n, p in ((5, 0), (1, 5), (3, 6), (1, 23), (8, 16), (2, 1)))
        ),
        dynamic=({0: Dim("s", 8)}, {}),
        operators={
            "et_vk.prepack.default": 1,
            "sym_size.int": 1,
            "et_vk.select_as_symint.default": 1,
            "add": 1,
            "aten.slice_copy.Tensor": 1,
            "aten.add.Tensor": 1,
        },
    ),
    Case(
        name="symint_from_last_of_input",
        module=lambda: Table(-1),
        sequences=in_order(
            *((f32(n, 6), _at(20, 7, p)) for n, p in ((5, 0), (1, 5), (8, 16), (2, 1)))
        ),
        dynamic=({0: Dim("s", 8)}, {}),
        operators={
            "et_vk.prepack.default": 1,
            "sym_size.int": 1,
            "et_vk.select_as_symint.default": 1,
            "add": 1,
            "aten.slice_copy.Tensor": 1,
            "aten.add.Tensor": 1,
        },
    ),
    Case(
        name="symint_window",
        module=Window,
        sequences=in_order(
            *((f32(9, 5), _at(a, b)) for a, b in ((0, 9), (8, 1), (3, 4), (0, 1), (2, 7)))
        ),
        operators={
            "et_vk.prepack.default": 1,
            "et_vk.select_as_symint.default": 2,
            "add": 1,
            "aten.slice_copy.Tensor": 1,
            "aten.mul.Tensor": 1,
        },
    ),
    Case(
        name="symint_from_intermediate",
        module=Computed,
        sequences=in_order(
            *(
                (f32(n, 6), i64(2, low=0, high=7), i64(2, low=0, high=8, slot=n))
                for n in (5, 1, 8, 2)
            )
        ),
        dynamic=({0: Dim("s", 8)}, {}, {}),
        operators={
            "et_vk.prepack.default": 1,
            "sym_size.int": 1,
            "aten.add.Tensor": 2,
            "et_vk.select_as_symint.default": 1,
            "add": 1,
            "aten.slice_copy.Tensor": 1,
        },
    ),
    Case(
        name="symint_arithmetic",
        # A length tripled, less one, halved and plus three, as sizes of views and bounds of slices.
        module=apply(
            lambda x: (
                x.reshape(x.size(0) * 3, 4) * 2,
                x[x.size(0) - 1 :] + x[:1],
                torch.full((x.size(0) // 2 + 3, x.size(0)), 0.5),
            )
        ),
        sequences=live(lambda n: (f32(n, 12),)),
        dynamic=({0: Dim("s", 13)},),
        operators={
            "et_vk.prepack.default": 1,
            "sym_size.int": 1,
            "mul": 1,
            "aten.view_copy.default": 1,
            "dim_order_ops._to_dim_order_copy.default": 1,
            "aten.clone.default": 1,
            "aten.mul.Tensor": 1,
            "sub": 1,
            "aten.slice_copy.Tensor": 2,
            "aten.add.Tensor": 1,
            "floordiv": 1,
            "add": 1,
            "aten.full.default": 1,
        },
    ),
    Case(
        name="symint_size_of_intermediate",
        module=apply(
            lambda x, y: torch.cat([x, y], 0).reshape(-1, 3)[x.size(0) + y.size(0) - 1 :] * 2
        ),
        sequences=live(lambda n: (f32(n, 6), f32(n, 6, slot=1))),
        dynamic=({0: Dim("s", 13)}, {0: Dim("s", 13)}),
        operators={
            "et_vk.prepack.default": 1,
            "sym_size.int": 1,
            "aten.cat.default": 1,
            "aten.view_copy.default": 1,
            "add": 1,
            "sub": 1,
            "aten.slice_copy.Tensor": 1,
            "dim_order_ops._to_dim_order_copy.default": 1,
            "aten.clone.default": 1,
            "aten.mul.Tensor": 1,
        },
    ),
    Case(
        name="symint_full",
        module=apply(lambda x: torch.full((x.size(0) * 2, x.size(0) + 1), 1.5)),
        sequences=live(lambda n: (f32(n, 5),)),
        dynamic=({0: Dim("s", 13)},),
        operators={"sym_size.int": 1, "mul": 1, "add": 1, "aten.full.default": 1},
    ),
]
