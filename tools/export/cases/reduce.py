# SPDX-License-Identifier: BSD-3-Clause
"""Sums, means, extrema and their positions."""

import torch

from tools.export.case import Case, f32, once, values
from tools.export.modules import all_of, apply, each

_ROWS = (f32(7), f32(3, 1), f32(3, 5), f32(2, 3, 67), f32(1, 2, 3, 257))
_INNER = (f32(3, 5), f32(2, 7, 5), f32(2, 3, 5, 7))


def _rows(name, function, operator):
    return Case(
        name=f"{name}_last",
        module=each(lambda x: function(x, -1, False)),
        sequences=once(*_ROWS),
        operators={operator: len(_ROWS)},
    )


def _any_dim(name, function, operator):
    return Case(
        name=f"{name}_any_dim",
        module=all_of(*(lambda x, d=d: function(x, d, True) for d in range(4))),
        sequences=once(f32(2, 3, 5, 7)),
        operators={operator: 4},
    )


def _sum(x, dim, keep):
    return torch.sum(x, dim, keepdim=keep)


def _mean(x, dim, keep):
    return torch.mean(x, dim, keepdim=keep)


CASES = [
    case
    for name, function, operator in (
        ("sum", _sum, "aten.sum.dim_IntList"),
        ("mean", _mean, "aten.mean.dim"),
        ("amax", torch.amax, "aten.amax.default"),
        ("amin", torch.amin, "aten.amin.default"),
        ("argmax", torch.argmax, "aten.argmax.default"),
        ("argmin", torch.argmin, "aten.argmin.default"),
    )
    for case in (_rows(name, function, operator), _any_dim(name, function, operator))
] + [
    Case(
        name="sum_two_dims",
        module=all_of(
            lambda x: torch.sum(x, (2, 3), keepdim=True),
            lambda x: torch.sum(x, (1, 2), keepdim=True),
            lambda x: torch.mean(x, (1, 3), keepdim=True),
        ),
        sequences=once(f32(2, 3, 5, 7)),
        operators={"aten.sum.dim_IntList": 2, "aten.clone.default": 2, "aten.mean.dim": 1},
    ),
    Case(
        name="argmax_ties",
        module=all_of(
            lambda x: torch.argmax(x, -1),
            lambda x: torch.argmin(x, -1),
            lambda x: torch.argmax(x, -1, keepdim=True),
        ),
        # The first of equal values wins; a row of one value; extremes at both ends.
        sequences=once(
            values(
                torch.float32,
                [1, 3, 3, 1, 3, 2, 2, 2, 2, 2, -1, -5, -5, -1, -7, 9, 0, 0, 0, 9],
                4,
                5,
            )
        ),
        operators={"aten.argmax.default": 2, "aten.argmin.default": 1},
    ),
    Case(
        name="argmax_vocabulary",
        module=apply(lambda x: torch.argmax(x, -1)),
        sequences=once(f32(1, 2, 32003)),
        operators={"aten.argmax.default": 1},
        big=True,
    ),
    Case(
        name="sum_two_grids",
        module=apply(lambda x: torch.sum(x, -1)),
        sequences=once(f32(65537, 3)),
        operators={"aten.sum.dim_IntList": 1},
        big=True,
    ),
]
