# SPDX-License-Identifier: BSD-3-Clause
"""Element-wise operators of one tensor."""

import torch
import torch.nn.functional as F

from tools.export.case import Case, f32, i32, once, values
from tools.export.modules import all_of, apply, each

_RANKS = (f32(1), f32(7), f32(3, 5), f32(2, 3, 7), f32(2, 1, 3, 5))


def _over_ranks(name, function, operator, inputs=_RANKS):
    return Case(
        name=name,
        module=each(function),
        sequences=once(*inputs),
        operators={operator: len(inputs)},
    )


def _positive(inputs):
    return tuple(f32(*x.shape, low=0.0625, high=9) for x in inputs)


CASES = [
    _over_ranks("abs", torch.abs, "aten.abs.default"),
    _over_ranks("exp", torch.exp, "aten.exp.default"),
    _over_ranks("sqrt", torch.sqrt, "aten.sqrt.default", _positive(_RANKS)),
    _over_ranks("rsqrt", torch.rsqrt, "aten.rsqrt.default", _positive(_RANKS)),
    _over_ranks("sin", torch.sin, "aten.sin.default"),
    _over_ranks("cos", torch.cos, "aten.cos.default"),
    _over_ranks("neg", torch.neg, "aten.neg.default"),
    Case(
        name="relu",
        module=each(F.relu),
        sequences=once(*_RANKS),
        # The lowering views the rank-4 input as rank 3.
        operators={"aten.relu.default": len(_RANKS), "aten.view_copy.default": 1},
    ),
    _over_ranks("hardswish", F.hardswish, "aten.hardswish.default"),
    Case(
        name="tanh_sigmoid",
        module=all_of(torch.tanh, torch.sigmoid),
        # Far beyond where exp overflows.
        sequences=once(values(torch.float32, [-200.0, -90.0, -15.5, -1.0, 0.0, 0.5, 15.5, 200.0])),
        operators={"aten.tanh.default": 1, "aten.sigmoid.default": 1},
    ),
    _over_ranks("sigmoid", torch.sigmoid, "aten.sigmoid.default"),
    _over_ranks("tanh", torch.tanh, "aten.tanh.default"),
    Case(
        name="round_to_even",
        module=apply(torch.round),
        sequences=once(
            values(torch.float32, [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4999, 3.5001, 1e7, -8388609.0])
        ),
        operators={"aten.round.default": 1},
    ),
    Case(
        name="gelu",
        module=all_of(F.gelu, lambda x: F.gelu(x, approximate="tanh")),
        sequences=once(f32(3, 37, low=-8, high=8)),
        operators={"aten.gelu.default": 2},
    ),
    Case(
        name="leaky_relu",
        module=all_of(F.leaky_relu, lambda x: F.leaky_relu(x, 0.3)),
        sequences=once(f32(3, 7)),
        operators={"aten.leaky_relu.default": 2},
    ),
    Case(
        name="clamp",
        module=all_of(
            lambda x: torch.clamp(x, -1.5, 2),
            lambda x: torch.clamp(x, min=0.5),
            lambda x: torch.clamp(x, max=-0.5),
            lambda x: F.hardtanh(x, -2, 1.25),
            F.relu6,
        ),
        sequences=once(f32(5, 13, low=-8, high=8)),
        operators={"aten.clamp.default": 3, "aten.hardtanh.default": 2},
    ),
    Case(
        name="clamp_int32",
        module=apply(lambda x: torch.clamp(x, -7, 11)),
        sequences=once(i32(5, 7)),
        operators={"aten.clamp.default": 1},
    ),
    Case(
        name="pow_scalar",
        module=all_of(
            lambda x: torch.pow(x, 2),
            lambda x: torch.pow(x, 3),
            lambda x: torch.pow(x, -1),
            lambda x: torch.pow(x, 0),
        ),
        sequences=once(values(torch.float32, [-3.0, -1.5, -1.0, 0.5, 1.0, 2.25, 10.0])),
        operators={"aten.pow.Tensor_Scalar": 4},
    ),
    Case(
        name="pow_scalar_fraction",
        module=all_of(lambda x: torch.pow(x, 0.5), lambda x: torch.pow(x, 1.7)),
        sequences=once(f32(3, 5, low=0.0625, high=9)),
        operators={"aten.pow.Tensor_Scalar": 2},
    ),
    Case(
        name="abs_two_grids",
        module=apply(torch.abs),
        # 256 threads a group: 65,537 groups.
        sequences=once(f32(4096, 4097)),
        operators={"aten.abs.default": 1},
        big=True,
    ),
]
