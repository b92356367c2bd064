# SPDX-License-Identifier: BSD-3-Clause
"""Element-wise operators of two tensors, comparisons, logic and where."""

import operator

import torch

from tools.export.case import Case, boolean, f32, i32, i64, once, values
from tools.export.modules import all_of, apply, each

# Pairs that broadcast every way: none, either operand, both at once, rank added, scalars.
_PAIRS = (
    ((7,), (7,)),
    ((1,), (1,)),
    ((3, 5), (5,)),
    ((5,), (3, 5)),
    ((3, 1), (1, 5)),
    ((2, 3, 7), (2, 1, 7)),
    ((1, 13), (11, 1)),
    ((2, 3, 1, 5), (3, 4, 1)),
    ((), (2, 3)),
    ((4, 6), ()),
)
_RANK5 = (((2, 1, 3, 1, 5), (2, 1, 2, 1)), ((1, 2, 1, 3), (3, 1, 2, 2, 1)))


def _pairs(shapes, make=f32, **bounds):
    second = {"slot": 1, **bounds}
    return [x for a, b in shapes for x in (make(*a, **bounds), make(*b, **second))]


CASES = [
    Case(
        name="add_broadcast",
        module=each(operator.add, 2),
        sequences=once(*_pairs(_PAIRS)),
        operators={"aten.add.Tensor": len(_PAIRS)},
    ),
    Case(
        name="sub_rank5_alpha",
        module=each(lambda x, y: torch.sub(x, y, alpha=2.5), 2),
        sequences=once(*_pairs(_RANK5)),
        operators={"aten.sub.Tensor": 2},
    ),
    Case(
        name="add_alpha",
        module=all_of(
            lambda x, y: torch.add(x, y, alpha=3), lambda x, y: torch.add(x, y, alpha=-0.5)
        ),
        sequences=once(f32(5, 7), f32(7)),
        operators={"aten.add.Tensor": 2},
    ),
    Case(
        name="add_scalar",
        module=all_of(lambda x: x + 2.5, lambda x: 3 - x, lambda x: x * -0.75, lambda x: x / 3),
        sequences=once(f32(3, 11)),
        operators={
            "et_vk.prepack.default": 4,
            "aten.add.Tensor": 1,
            "dim_order_ops._to_dim_order_copy.default": 2,
            "aten.clone.default": 2,
            "aten.sub.Tensor": 1,
            "aten.mul.Tensor": 1,
            "aten.div.Tensor": 1,
        },
    ),
    Case(
        name="sub_broadcast",
        module=each(operator.sub, 2),
        sequences=once(*_pairs(_PAIRS[2:6])),
        operators={"aten.sub.Tensor": 4},
    ),
    Case(
        name="mul_broadcast",
        module=each(operator.mul, 2),
        sequences=once(*_pairs(_PAIRS[2:8])),
        operators={"aten.mul.Tensor": 6},
    ),
    Case(
        name="div_broadcast",
        module=each(operator.truediv, 2),
        sequences=once(*_pairs(_PAIRS[2:6], low=0.5, high=4)),
        operators={"aten.div.Tensor": 4},
    ),
    Case(
        name="div_floor",
        module=apply(lambda x, y: torch.div(x, y, rounding_mode="floor")),
        sequences=once(f32(5, 7), values(torch.float32, [0.5, -0.75, 1.25, -2.5, 3.0, -3.5, 1.0])),
        operators={"aten.div.Tensor_mode": 1},
    ),
    Case(
        name="minimum_broadcast",
        module=each(torch.minimum, 2),
        sequences=once(*_pairs(_PAIRS[2:6])),
        operators={"aten.minimum.default": 4},
    ),
    Case(
        name="pow_tensor",
        module=each(torch.pow, 2),
        sequences=once(*_pairs(_PAIRS[2:6], low=0.25, high=3)),
        operators={"aten.pow.Tensor_Tensor": 4},
    ),
    Case(
        name="pow_tensor_edges",
        module=apply(torch.pow),
        sequences=once(
            values(torch.float32, [0.0, 0.0, 1.0, -1.0, -2.0, -2.0, -1.5, 2.0]),
            values(torch.float32, [0.0, 2.0, 7.5, 3.0, 3.0, 2.0, -2.0, -3.0]),
        ),
        operators={"aten.pow.Tensor_Tensor": 1},
    ),
    Case(
        name="binary_int32",
        module=all_of(operator.add, operator.sub, operator.mul, torch.minimum),
        sequences=once(i32(3, 5), i32(5, slot=1)),
        operators={
            "aten.add.Tensor": 1,
            "aten.sub.Tensor": 1,
            "aten.mul.Tensor": 1,
            "aten.minimum.default": 1,
        },
    ),
    Case(
        name="add_int32_wraps",
        module=apply(operator.add),
        sequences=once(
            values(torch.int32, [2**31 - 1, -(2**31), 2**24 + 1, -7]),
            values(torch.int32, [1, -1, 2, 7]),
        ),
        operators={"aten.add.Tensor": 1},
    ),
    Case(
        name="div_int32_floor",
        module=apply(lambda x, y: torch.div(x, y, rounding_mode="floor")),
        sequences=once(
            values(torch.int32, [7, -7, 7, -7, 0, 2**30 + 1]),
            values(torch.int32, [2, 2, -2, -2, 5, 3]),
        ),
        operators={"aten.div.Tensor_mode": 1},
    ),
    Case(
        name="add_int64",
        module=apply(operator.add),
        sequences=once(i64(3, 5), i64(5, slot=1)),
        operators={"aten.add.Tensor": 1},
    ),
    Case(
        name="add_two_grids",
        module=apply(operator.add),
        # 64 threads a group: 65,664 groups of one element each, past one grid's 65,535.
        sequences=once(f32(1026, 1, low=-1, high=1), f32(1, 4096, low=-1, high=1)),
        operators={"aten.add.Tensor": 1},
        big=True,
    ),
    Case(
        name="compare_tensor",
        module=all_of(operator.eq, operator.lt, operator.le, operator.gt, operator.ge),
        sequences=once(
            values(torch.float32, [1.0, 2.0, 3.0, -0.0, 5.5, -1.0, 7.25]),
            values(torch.float32, [1.0, 2.5, 2.0, 0.0, 5.5, -2.0, 8.25]),
        ),
        operators={f"aten.{n}.Tensor": 1 for n in ("eq", "lt", "le", "gt", "ge")},
    ),
    Case(
        name="compare_broadcast",
        module=each(lambda x, y: x > y, 2),
        sequences=once(*_pairs(_PAIRS[:8])),
        operators={"aten.gt.Tensor": 8},
    ),
    Case(
        name="compare_scalar",
        module=all_of(
            lambda x: x == 1.5,
            lambda x: x != 1.5,
            lambda x: x <= 1.5,
            lambda x: x >= 1.5,
            lambda x: x < 1.5,
            lambda x: x > 1.5,
        ),
        sequences=once(values(torch.float32, [1.5, 1.25, 1.75, -1.5, 0.0, 1.5, 9.0])),
        operators={f"aten.{n}.Scalar": 1 for n in ("eq", "ne", "le", "ge", "lt", "gt")},
    ),
    Case(
        name="compare_int32",
        module=all_of(operator.eq, operator.lt, operator.le, operator.gt, operator.ge),
        # Neighbours above 2^24 that float32 cannot tell apart.
        sequences=once(
            values(torch.int32, [1, 2**24, 2**24 + 1, -(2**31), 2**31 - 1]),
            values(torch.int32, [1, 2**24 + 1, 2**24, 2**31 - 1, 2**31 - 1]),
        ),
        operators={f"aten.{n}.Tensor": 1 for n in ("eq", "lt", "le", "gt", "ge")},
    ),
    Case(
        name="logic",
        module=all_of(
            torch.logical_and,
            torch.logical_or,
            torch.bitwise_and,
            torch.bitwise_or,
            lambda x, y: torch.logical_not(x),
            lambda x, y: torch.bitwise_not(y),
        ),
        sequences=once(boolean(3, 5), boolean(3, 5, slot=1)),
        operators={
            "aten.logical_and.default": 1,
            "aten.logical_or.default": 1,
            "aten.bitwise_and.Tensor": 1,
            "aten.bitwise_or.Tensor": 1,
            "aten.logical_not.default": 1,
            "aten.bitwise_not.default": 1,
        },
    ),
    Case(
        name="logic_broadcast",
        module=each(torch.logical_or, 2),
        sequences=once(
            boolean(1), boolean(1, slot=1), boolean(3, 1), boolean(5), boolean(7), boolean(2, 3, 7)
        ),
        operators={"aten.logical_or.default": 3},
    ),
    Case(
        name="where_broadcast",
        module=each(torch.where, 3),
        sequences=once(
            *(boolean(7), f32(7), f32(7, slot=1)),
            *(boolean(3, 1), f32(3, 5), f32(5)),
            *(boolean(2, 1, 5), f32(3, 1), f32(1)),
            *(boolean(1), f32(1), f32(1, slot=1)),
        ),
        operators={"aten.where.self": 4},
    ),
]
