# SPDX-License-Identifier: BSD-3-Clause
"""Softmax and its logarithm."""

import torch

from tools.export.case import Case, f32, once, values
from tools.export.modules import all_of, apply, each

_SHAPES = (f32(1), f32(7), f32(3, 1), f32(3, 5), f32(2, 3, 67), f32(1, 4, 7, 9))

CASES = [
    Case(
        name="softmax_last",
        module=each(lambda x: torch.softmax(x, -1)),
        sequences=once(*_SHAPES),
        operators={"aten._softmax.default": len(_SHAPES)},
    ),
    Case(
        name="log_softmax_last",
        module=each(lambda x: torch.log_softmax(x, -1)),
        sequences=once(*_SHAPES),
        operators={"aten._log_softmax.default": len(_SHAPES)},
    ),
    Case(
        name="softmax_any_dim",
        module=all_of(*(lambda x, d=d: torch.softmax(x, d) for d in range(4))),
        sequences=once(f32(2, 3, 5, 7)),
        operators={"aten._softmax.default": 4},
    ),
    Case(
        name="log_softmax_any_dim",
        module=all_of(*(lambda x, d=d: torch.log_softmax(x, d) for d in range(3))),
        sequences=once(f32(3, 5, 7)),
        operators={"aten._log_softmax.default": 3},
    ),
    Case(
        name="softmax_big_logits",
        module=all_of(lambda x: torch.softmax(x, -1), lambda x: torch.log_softmax(x, -1)),
        # exp of these overflows or vanishes unless the maximum is subtracted first.
        sequences=once(
            values(
                torch.float32,
                [1e4, 9999.0, -1e4, 88.0, -300.0, -301.0, -302.0, -303.0, 5e8, 5e8, 0.0, -5e8],
                3,
                4,
            )
        ),
        operators={"aten._softmax.default": 1, "aten._log_softmax.default": 1},
    ),
    Case(
        name="softmax_long_row",
        module=apply(lambda x: torch.softmax(x, -1)),
        sequences=once(f32(2, 4099, low=-8, high=8)),
        operators={"aten._softmax.default": 1},
    ),
    Case(
        name="softmax_two_grids",
        module=apply(lambda x: torch.softmax(x, -1)),
        sequences=once(f32(65537, 3)),
        operators={"aten._softmax.default": 1},
        big=True,
    ),
]
