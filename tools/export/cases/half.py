# SPDX-License-Identifier: BSD-3-Clause
"""Graphs that compute in half precision; inputs and outputs stay float32."""

import torch
import torch.nn.functional as F

from tools.export.case import Case, Dim, f32, i64, live
from tools.export.cases.chains import SwiGlu
from tools.export.cases.norm import RmsNorm
from tools.export.modules import apply


def _half(**fields):
    return Case(
        options={"force_fp16": True},
        atol=5e-3,
        rtol=5e-3,
        reason="every tensor inside the graph is half precision",
        **fields,
    )


_S = Dim("s", 13)

CASES = [
    _half(
        name="half_pointwise_live",
        # 7 values a row: lengths that end inside a 32-bit word.
        module=apply(
            lambda x, y: (
                x + y,
                x * y,
                x / (y * y + 1),
                torch.sigmoid(x),
                F.gelu(y),
                torch.softmax(x, -1),
                torch.amax(x, -1),
                torch.cat([x, y], 1).transpose(0, 1),
            )
        ),
        sequences=live(lambda n: (f32(n, 7, low=-2, high=2), f32(n, 7, slot=1, low=-2, high=2))),
        dynamic=({0: _S}, {0: _S}),
        operators={
            "et_vk.prepack.default": 1,
            "aten.add.Tensor": 2,
            "aten.mul.Tensor": 2,
            "dim_order_ops._to_dim_order_copy.default": 1,
            "aten.clone.default": 2,
            "aten.div.Tensor": 1,
            "aten.sigmoid.default": 1,
            "aten.gelu.default": 1,
            "aten._softmax.default": 1,
            "aten.amax.default": 1,
            "aten.cat.default": 1,
            "aten.permute_copy.default": 1,
        },
    ),
    _half(
        name="half_rms_norm_live",
        module=lambda: RmsNorm(33),
        sequences=live(lambda n: (f32(1, n, 33),)),
        dynamic=({1: _S},),
        operators={"et_vk.rms_norm.default": 1},
    ),
    _half(
        name="half_swiglu_live",
        module=lambda: SwiGlu(32, 88),
        sequences=live(lambda n: (f32(1, n, 32, low=-1, high=1),)),
        dynamic=({1: _S},),
        operators={
            "sym_size.int": 1,
            "et_vk.rms_norm.default": 1,
            "aten.view_copy.default": 6,
            "aten.linear.default": 3,
            "aten.sigmoid.default": 1,
            "aten.mul.Tensor": 2,
            "aten.add.Tensor": 1,
        },
    ),
    _half(
        name="half_bmm_live",
        module=apply(lambda x, y: torch.bmm(x, y)),
        sequences=live(lambda n: (f32(3, n, 16, low=-1, high=1), f32(3, 16, n, low=-1, high=1))),
        dynamic=({1: _S}, {2: _S}),
        operators={"aten.bmm.default": 1},
    ),
    _half(
        name="half_integers_live",
        # Integers in a half precision graph stay integers.
        module=apply(lambda i, x: (i + i, i * 3, torch.index_select(x, 0, i))),
        sequences=live(lambda n: (i64(n, low=0, high=8), f32(9, 5))),
        dynamic=({0: _S}, {}),
        operators={
            "et_vk.prepack.default": 1,
            "aten.add.Tensor": 1,
            "aten.mul.Tensor": 1,
            "aten.index_select.default": 1,
        },
    ),
]
