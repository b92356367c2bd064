# SPDX-License-Identifier: BSD-3-Clause
"""Operators that move, repeat, convert or create elements."""

import torch
import torch.nn.functional as F

from tools.export.case import Case, boolean, f32, i32, once
from tools.export.modules import all_of, apply, each

_R5 = f32(2, 3, 1, 5, 4)

CASES = [
    Case(
        name="view",
        module=all_of(
            lambda x: x.reshape(12, 10),
            lambda x: x.reshape(-1),
            lambda x: x.reshape(1, 2, 3, 4, 5),
        ),
        sequences=once(f32(2, 3, 20)),
        operators={"aten.view_copy.default": 3},
        copies_only=True,
    ),
    Case(
        name="squeeze_unsqueeze",
        module=all_of(
            lambda x: x.squeeze(1) + 0.5,
            lambda x: x.unsqueeze(0) + 0.5,
            lambda x: x.unsqueeze(-1) + 0.5,
            lambda x: x.squeeze(1, 3) + 0.5,
        ),
        sequences=once(f32(3, 1, 5, 1)),
        operators={
            "et_vk.prepack.default": 4,
            "aten.squeeze_copy.dims": 2,
            "aten.add.Tensor": 4,
            "aten.unsqueeze_copy.default": 2,
        },
    ),
    Case(
        name="clone",
        # The lowering drops the clone, so an output of the graph is one of its inputs.
        module=apply(lambda x: (x.clone(), x * x)),
        sequences=once(f32(3, 5)),
        operators={"aten.mul.Tensor": 1},
    ),
    Case(
        name="view_of_view",
        module=apply(
            lambda x: x.view(1, 7, 4, 16).permute(0, 2, 1, 3).contiguous().reshape(4, 7, 16)
        ),
        sequences=once(f32(1, 7, 64)),
        operators={
            "aten.view_copy.default": 1,
            "aten.permute_copy.default": 1,
            "aten.squeeze_copy.dims": 1,
        },
    ),
    Case(
        name="permute",
        module=all_of(
            lambda x: x.permute(1, 0, 2, 3),
            lambda x: x.permute(3, 2, 1, 0),
            lambda x: x.permute(0, 2, 3, 1),
            lambda x: x.transpose(-1, -2),
        ),
        sequences=once(f32(2, 3, 5, 7)),
        operators={"aten.permute_copy.default": 4},
    ),
    Case(
        name="permute_ranks",
        module=apply(
            lambda a, b, c: (a.permute(1, 0), b.permute(2, 0, 1), c.permute(4, 0, 3, 1, 2))
        ),
        sequences=once(f32(31, 33), f32(3, 1, 7), _R5),
        operators={"aten.permute_copy.default": 3},
    ),
    Case(
        name="permute_int32_bool",
        module=each(lambda x: x.permute(1, 0)),
        sequences=once(i32(3, 5), boolean(5, 3)),
        operators={"aten.permute_copy.default": 2},
    ),
    Case(
        name="slice",
        module=all_of(
            lambda x: x[1:],
            lambda x: x[:, -2:],
            lambda x: x[:, :, 1:6:2],
            lambda x: x[..., ::3],
            lambda x: x[:, 1:2],
        ),
        sequences=once(f32(3, 5, 7)),
        operators={"aten.slice_copy.Tensor": 5},
    ),
    Case(
        name="slice_ranks",
        module=apply(lambda a, b, c, d: (a[2:5], b[:, :, 1:, :], c[..., 1:, 1:3], d[1:3])),
        sequences=once(f32(7), f32(2, 1, 3, 5), _R5, i32(4, 3)),
        operators={"aten.slice_copy.Tensor": 5},
    ),
    Case(
        name="select",
        module=all_of(
            lambda x: x[0], lambda x: x[:, -1], lambda x: x[..., 3], lambda x: x.select(1, 2)
        ),
        sequences=once(f32(3, 5, 7)),
        operators={"aten.select_copy.int": 4},
    ),
    Case(
        name="cat",
        module=all_of(
            lambda x, y, z: torch.cat([x, y], 0),
            lambda x, y, z: torch.cat([x, z], 1),
            lambda x, y, z: torch.cat([y, x, y], 0),
        ),
        sequences=once(f32(2, 5, 3), f32(1, 5, 3), f32(2, 1, 3)),
        operators={"aten.cat.default": 3},
    ),
    Case(
        name="cat_last_many",
        module=apply(lambda a, b, c, d, e: torch.cat([a, b, c, d, e], -1)),
        sequences=once(f32(3, 1), f32(3, 2), f32(3, 4), f32(3, 1, slot=1), f32(3, 7)),
        operators={"aten.cat.default": 1},
    ),
    Case(
        name="cat_int32",
        module=apply(lambda x, y: torch.cat([x, y], 0)),
        sequences=once(i32(3, 5), i32(1, 5)),
        operators={"aten.cat.default": 1},
    ),
    Case(
        name="split",
        module=apply(lambda x: torch.split(x, [1, 4, 2], -1)),
        sequences=once(f32(3, 5, 7)),
        operators={"aten.split_with_sizes_copy.default": 1},
    ),
    Case(
        name="expand",
        module=all_of(
            lambda x, y: x.expand(2, 3, 5),
            lambda x, y: y.expand(-1, 7),
            lambda x, y: y.expand(4, 3, 2),
        ),
        sequences=once(f32(1, 3, 5), f32(3, 1)),
        operators={"aten.expand_copy.default": 3},
    ),
    Case(
        name="repeat",
        module=all_of(
            lambda x: x.repeat(2, 1), lambda x: x.repeat(1, 3), lambda x: x.repeat(2, 3, 2)
        ),
        sequences=once(f32(3, 5)),
        operators={"aten.repeat.default": 3},
    ),
    Case(
        name="flip",
        module=all_of(lambda x: x.flip(0), lambda x: x.flip(-1), lambda x: x.flip(0, 2)),
        sequences=once(f32(3, 5, 7)),
        operators={"aten.flip.default": 3},
    ),
    Case(
        name="pad",
        module=all_of(
            lambda x: F.pad(x, (1, 2)),
            lambda x: F.pad(x, (0, 1, 2, 0), value=-1.5),
            lambda x: F.pad(x, (1, 1, 1, 1, 1, 1), value=7),
        ),
        sequences=once(f32(2, 3, 5)),
        operators={"aten.constant_pad_nd.default": 3},
    ),
    Case(
        name="pixel_shuffle",
        module=all_of(lambda x: F.pixel_shuffle(x, 2), lambda x: F.pixel_shuffle(x, 1)),
        sequences=once(f32(1, 8, 3, 5)),
        operators={"aten.pixel_shuffle.default": 2},
    ),
    Case(
        name="to_copy",
        module=apply(
            lambda i, b, x: (i.to(torch.float32), b.to(torch.float32), x.to(torch.int32))
        ),
        sequences=once(i32(3, 5), boolean(7), f32(3, 7)),
        operators={"dim_order_ops._to_dim_order_copy.default": 3},
    ),
    Case(
        name="to_copy_bool_int",
        module=apply(lambda b, i: (b.to(torch.int32), i.to(torch.bool))),
        sequences=once(boolean(7), i32(3, 5, low=-1, high=1)),
        operators={"dim_order_ops._to_dim_order_copy.default": 2},
    ),
    Case(
        name="fill",
        module=apply(
            lambda x: (
                x + torch.full((3, 5), 2.5),
                x * torch.ones(5),
                torch.zeros_like(x) - x,
                torch.full_like(x, -1.25) * x,
            )
        ),
        sequences=once(f32(3, 5)),
        operators={
            "aten.full.default": 2,
            "aten.add.Tensor": 1,
            "aten.mul.Tensor": 2,
            "aten.full_like.default": 2,
            "aten.sub.Tensor": 1,
        },
    ),
    Case(
        name="permute_two_grids",
        module=apply(lambda x: x.permute(1, 0)),
        sequences=once(f32(2051, 2053, low=-1, high=1)),
        operators={"aten.permute_copy.default": 1},
        big=True,
    ),
]
