# SPDX-License-Identifier: BSD-3-Clause
# size: a table of cases: one after the other, each a few lines.
"""Every operator family at several lengths of one dimension, in one loaded model."""

import torch
import torch.nn.functional as F
from torch import nn

from tools.export.case import Case, Dim, boolean, f32, i32, i64, live
from tools.export.cases.chains import SwiGlu
from tools.export.cases.norm import RmsNorm
from tools.export.modules import all_of, apply, fill, weight

S = Dim("s", 13)
TALL = (5, 1, 33, 1, 67, 2)  # beside and across tiles of 8, 16, 32 and 64 rows


def _tall(*axes):
    return tuple({axis: Dim("s", TALL[4])} if axis is not None else {} for axis in axes)


def _live(*axes):
    """The axis of every input that is live, or None."""
    return tuple({axis: S} if axis is not None else {} for axis in axes)


class Norms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rms = nn.ModuleList((RmsNorm(32), RmsNorm(7)))
        self.layer = fill(nn.LayerNorm(37))

    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple:
        return self.rms[0](x), self.rms[1](y), self.layer(z)


class Products(nn.Module):
    """Linear layers, and products whose M, N, K or batch is live."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = nn.Linear(36, 20, bias=False)
        self.odd = nn.Linear(7, 5)
        fill(self)
        self.right = nn.Parameter(weight("right", 36, 9))

    def forward(self, x: torch.Tensor, y: torch.Tensor, left: torch.Tensor) -> tuple:
        return (
            self.plain(x),
            self.odd(y),
            torch.mm(y, left),
            torch.mm(left, y),
            torch.mm(x[0], self.right),
        )


class Tables(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows = fill(nn.Embedding(23, 12), scale=1)
        self.odd = fill(nn.Embedding(9, 7), scale=1)

    def forward(self, i: torch.Tensor, j: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.rows(i), self.odd(j)


def _attention_shapes(x):
    """[1, s, 64] to [4, s, 16] and back, as attention does."""
    length = x.size(1)
    heads = x.view(1, length, 4, 16).permute(0, 2, 1, 3).contiguous()
    return heads.reshape(4, length, 16), heads.transpose(1, 2).reshape(1, length, 64) + x


CASES = [
    Case(
        name="binary_live",
        module=apply(
            lambda x, y, row, last: (
                x + y,
                x - row,
                x * y * row,
                x / (y * y + 1),
                torch.minimum(x, y),
                last + last[:1],
            )
        ),
        sequences=live(lambda n: (f32(n, 7), f32(n, 1), f32(7), f32(3, n))),
        dynamic=_live(0, 0, None, 1),
        operators={
            "et_vk.prepack.default": 1,
            "aten.add.Tensor": 3,
            "aten.sub.Tensor": 1,
            "aten.mul.Tensor": 3,
            "dim_order_ops._to_dim_order_copy.default": 1,
            "aten.clone.default": 1,
            "aten.div.Tensor": 1,
            "aten.minimum.default": 1,
            "aten.slice_copy.Tensor": 1,
        },
    ),
    Case(
        name="binary_int32_live",
        module=apply(lambda x, y: (x + y, x - y, x * x)),
        sequences=live(lambda n: (i32(n, 5), i32(n, 1, slot=1))),
        dynamic=_live(0, 0),
        operators={"aten.add.Tensor": 1, "aten.sub.Tensor": 1, "aten.mul.Tensor": 1},
    ),
    Case(
        name="unary_live",
        module=all_of(
            torch.abs,
            torch.exp,
            torch.sin,
            torch.tanh,
            torch.neg,
            torch.sigmoid,
            F.relu,
            F.gelu,
            F.hardswish,
            F.leaky_relu,
            lambda x: torch.clamp(x, -1.5, 2),
            lambda x: torch.pow(x, 2),
        ),
        sequences=live(lambda n: (f32(n, 7),)),
        dynamic=_live(0),
        operators={
            "aten.abs.default": 1,
            "aten.exp.default": 1,
            "aten.sin.default": 1,
            "aten.tanh.default": 1,
            "aten.neg.default": 1,
            "aten.sigmoid.default": 1,
            "aten.relu.default": 1,
            "aten.gelu.default": 1,
            "aten.hardswish.default": 1,
            "aten.leaky_relu.default": 1,
            "aten.clamp.default": 1,
            "aten.pow.Tensor_Scalar": 1,
        },
    ),
    Case(
        name="compare_live",
        module=apply(
            # 7 bytes a row: every length ends at another place in a word.
            lambda x, y, a, b: (
                x > y,
                x <= 0.5,
                x == x[:1],
                torch.logical_and(a, b),
                torch.logical_or(a, b),
                torch.logical_not(b),
                torch.where(a, x, y),
            )
        ),
        sequences=live(
            lambda n: (f32(n, 7), f32(n, 7, slot=1), boolean(n, 1, slot=1), boolean(n, 7))
        ),
        dynamic=_live(0, 0, 0, 0),
        operators={
            "aten.gt.Tensor": 1,
            "aten.le.Scalar": 1,
            "aten.slice_copy.Tensor": 1,
            "aten.eq.Tensor": 1,
            "aten.logical_and.default": 1,
            "aten.logical_or.default": 1,
            "aten.logical_not.default": 1,
            "aten.where.self": 1,
        },
    ),
    Case(
        name="convert_live",
        module=apply(
            lambda i, b, x: (
                i.to(torch.float32),
                b.to(torch.float32),
                x.to(torch.int32),
                b.to(torch.int32),
                i.to(torch.bool),
            )
        ),
        sequences=live(lambda n: (i32(n, 5, low=-2, high=2), boolean(n, 7), f32(3, n))),
        dynamic=_live(0, 0, 1),
        operators={"dim_order_ops._to_dim_order_copy.default": 5},
    ),
    Case(
        name="fill_live",
        module=apply(
            lambda x: (
                torch.full_like(x, 2.5),
                torch.full((x.size(0), 3), -1.25),
                torch.ones_like(x) + x,
            )
        ),
        sequences=live(lambda n: (f32(n, 5),)),
        dynamic=_live(0),
        operators={
            "sym_size.int": 1,
            "aten.full_like.default": 2,
            "aten.full.default": 1,
            "aten.add.Tensor": 1,
        },
    ),
    Case(
        name="softmax_live",
        module=apply(
            lambda x, y: (
                torch.softmax(x, -1),
                torch.log_softmax(x, -1),
                torch.softmax(y, -1),
                torch.softmax(y, 0),
                torch.log_softmax(y, 0),
            )
        ),
        # Rows, row length and the stride between the elements of a line are live in turn.
        sequences=live(lambda n: (f32(n, 7), f32(3, n)), TALL),
        dynamic=_tall(0, 1),
        operators={"aten._softmax.default": 3, "aten._log_softmax.default": 2},
    ),
    Case(
        name="reduce_live",
        module=apply(
            lambda x, y: (
                torch.sum(x, -1),
                torch.sum(x, 0, keepdim=True),
                torch.mean(y, -1),
                torch.mean(x, 0, keepdim=True),
                torch.amax(y, -1, keepdim=True),
                torch.amin(x, -1),
            )
        ),
        sequences=live(lambda n: (f32(n, 7), f32(3, n)), TALL),
        dynamic=_tall(0, 1),
        operators={
            "aten.sum.dim_IntList": 2,
            "aten.clone.default": 1,
            "aten.mean.dim": 2,
            "aten.amax.default": 1,
            "aten.amin.default": 1,
        },
    ),
    Case(
        name="argmax_live",
        module=apply(lambda x, y: (torch.argmax(x, -1), torch.argmax(y, -1), torch.argmin(y, -1))),
        sequences=live(lambda n: (f32(n, 7), f32(3, n)), TALL),
        dynamic=_tall(0, 1),
        operators={"aten.argmax.default": 2, "aten.argmin.default": 1},
    ),
    Case(
        name="norm_live",
        module=Norms,
        sequences=live(lambda n: (f32(1, n, 32), f32(n, 7), f32(2, n, 37)), TALL),
        dynamic=_tall(1, 0, 1),
        operators={"et_vk.rms_norm.default": 2, "aten.native_layer_norm.default": 1},
    ),
    Case(
        name="matmul_live",
        module=Products,
        # M of the linear layers, M, N and K of mm.
        sequences=live(lambda n: (f32(1, n, 36), f32(n, 7), f32(7, n)), TALL),
        dynamic=_tall(1, 0, 1),
        operators={
            "sym_size.int": 1,
            "aten.view_copy.default": 2,
            "aten.linear.default": 2,
            "aten.mm.default": 3,
            "aten.select_copy.int": 1,
        },
    ),
    Case(
        name="bmm_live",
        module=apply(lambda x, y, z: (torch.bmm(x, y), torch.bmm(z, z), torch.matmul(y, x))),
        sequences=live(lambda n: (f32(3, n, 16), f32(3, 16, n), f32(n, 5, 5))),
        dynamic=_live(1, 2, 0),
        operators={"sym_size.int": 1, "aten.bmm.default": 3, "aten.view_copy.default": 3},
    ),
    Case(
        name="embedding_live",
        module=Tables,
        sequences=live(lambda n: (i64(1, n, low=0, high=22), i32(n, low=0, high=8))),
        dynamic=_live(1, 0),
        operators={"aten.embedding.default": 2},
    ),
    Case(
        name="gather_live",
        module=apply(
            lambda x, i, j: (
                torch.index_select(x, 0, i),
                torch.index_select(x, 1, i),
                x[:, 0][i],
                torch.gather(x, 0, j),
            )
        ),
        sequences=live(
            lambda n: (f32(5, 7), i64(n, low=0, high=4), i64(n, 3, low=0, high=4)),
            (5, 1, 3, 1, 4, 2),
        ),
        dynamic=tuple({0: Dim("s", 5)} if k else {} for k in range(3)),
        operators={
            "aten.index_select.default": 2,
            "aten.select_copy.int": 1,
            "aten.index.Tensor": 1,
            "aten.gather.default": 1,
        },
    ),
    Case(
        name="view_live",
        module=apply(
            lambda x: (
                x.reshape(1, x.size(1), 4, 16) * 2,
                x.reshape(x.size(1) * 4, 16) * 3,
                x.reshape(-1) * 4,
                x.squeeze(0) * 5,
                x.unsqueeze(2) * 6,
            )
        ),
        sequences=live(lambda n: (f32(1, n, 64),)),
        dynamic=_live(1),
        operators={
            "et_vk.prepack.default": 5,
            "sym_size.int": 1,
            "aten.view_copy.default": 3,
            "dim_order_ops._to_dim_order_copy.default": 5,
            "aten.clone.default": 5,
            "aten.mul.Tensor": 5,
            "mul": 1,
            "aten.squeeze_copy.dims": 1,
            "aten.unsqueeze_copy.default": 1,
        },
    ),
    Case(
        name="attention_shapes_live",
        module=apply(_attention_shapes),
        sequences=live(lambda n: (f32(1, n, 64),)),
        dynamic=_live(1),
        operators={
            "sym_size.int": 1,
            "aten.view_copy.default": 3,
            "aten.permute_copy.default": 2,
            "aten.add.Tensor": 1,
        },
    ),
    Case(
        name="permute_live",
        module=apply(
            lambda x, y: (
                x.permute(1, 0, 2),
                x.permute(2, 1, 0),
                x.transpose(-1, -2),
                y.permute(1, 0),
            )
        ),
        sequences=live(lambda n: (f32(2, n, 5), i32(n, 3))),
        dynamic=_live(1, 0),
        operators={"aten.permute_copy.default": 4},
    ),
    Case(
        name="slice_select_live",
        module=apply(
            # The last row, which moves with the length; a window of the other dimension.
            lambda x: (x[:, -1], x[:, -1:], x[:, :, 1:6:2], x[1:], x[0], x[..., 3])
        ),
        sequences=live(lambda n: (f32(3, n, 7),)),
        dynamic=_live(1),
        operators={"aten.select_copy.int": 3, "aten.slice_copy.Tensor": 3},
    ),
    Case(
        name="cat_split_live",
        module=apply(
            lambda x, y, z: (
                torch.cat([x, y, x], 0),
                torch.cat([x, z], 1),
                torch.cat([y, x], 0),
                *torch.split(x, [1, 4, 2], 1),
            )
        ),
        sequences=live(lambda n: (f32(n, 7), f32(2, 7), f32(n, 3))),
        dynamic=_live(0, None, 0),
        operators={"aten.cat.default": 3, "aten.split_with_sizes_copy.default": 1},
    ),
    Case(
        name="expand_repeat_live",
        module=apply(
            lambda x, y: (
                x.expand(x.size(0), 5),
                y.expand(3, y.size(1)),
                y.expand(x.size(0), y.size(1)),
                x.repeat(2, 3),
            )
        ),
        sequences=live(lambda n: (f32(n, 1), f32(1, n))),
        dynamic=_live(0, 1),
        operators={"sym_size.int": 1, "aten.expand_copy.default": 3, "aten.repeat.default": 1},
    ),
    Case(
        name="flip_pad_live",
        module=all_of(
            lambda x: x.flip(0),
            lambda x: x.flip(1),
            lambda x: F.pad(x, (1, 2)),
            lambda x: F.pad(x, (0, 0, 2, 1), value=-1),
        ),
        sequences=live(lambda n: (f32(n, 5),)),
        dynamic=_live(0),
        operators={"aten.flip.default": 2, "aten.constant_pad_nd.default": 2},
    ),
    Case(
        name="swiglu_live",
        module=lambda: SwiGlu(32, 88),
        sequences=live(lambda n: (f32(1, n, 32),), TALL),
        dynamic=_tall(1),
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
    Case(
        name="reused_memory_live",
        # One memory object holds tensors of several live sizes in turn.
        module=apply(
            lambda x, y: (
                torch.sum(torch.exp(torch.cat([x, x + y], 1)) * 0.5, -1) + torch.amax(x, -1),
                torch.softmax((x - y).transpose(0, 1), 0),
            )
        ),
        sequences=live(lambda n: (f32(n, 7), f32(7))),
        dynamic=_live(0, None),
        operators={
            "et_vk.prepack.default": 1,
            "aten.add.Tensor": 2,
            "aten.cat.default": 1,
            "aten.exp.default": 1,
            "aten.mul.Tensor": 1,
            "aten.sum.dim_IntList": 1,
            "aten.amax.default": 1,
            "aten.sub.Tensor": 1,
            "aten.permute_copy.default": 1,
            "aten._softmax.default": 1,
        },
    ),
]
