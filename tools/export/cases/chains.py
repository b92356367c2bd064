# SPDX-License-Identifier: BSD-3-Clause
"""Dependent dispatches in one delegate, and operators that stay on the host between delegates."""

import torch
import torch.nn.functional as F
from torch import nn

from tools.export.case import Case, f32, i32, once, same_shapes
from tools.export.cases.norm import RmsNorm
from tools.export.modules import apply, fill


def _self_chain(length):
    def forward(x):
        y = x
        for _ in range(length):
            y = y + x
        return y

    return forward


class NormAdd(nn.Module):
    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.norm(x) + y


class SwiGlu(nn.Module):
    """The feed-forward block of a Llama, residual included."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        fill(self)
        self.norm = RmsNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Argmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argmax(x, -1)


CASES = [
    *(
        Case(
            name=f"add_self_chain_{length}",
            module=apply(_self_chain(length)),
            sequences={"in order": same_shapes((f32(5, 7),), (f32(5, 7),))},
            operators={"aten.add.Tensor": length},
        )
        for length in (1, 3, 8, 32)
    ),
    Case(
        name="rms_norm_add",
        module=lambda: NormAdd(RmsNorm(64)),
        sequences=once(f32(1, 7, 64), f32(1, 7, 64, slot=1)),
        operators={"et_vk.rms_norm.default": 1, "aten.add.Tensor": 1},
    ),
    Case(
        name="torch_rms_norm_add",
        module=lambda: NormAdd(fill(nn.RMSNorm(64, eps=1e-5))),
        sequences=once(f32(1, 7, 64), f32(1, 7, 64, slot=1)),
        operators={
            "aten.pow.Tensor_Scalar": 1,
            "aten.mean.dim": 1,
            "et_vk.prepack.default": 1,
            "aten.rsqrt.default": 1,
            "aten.mul.Tensor": 2,
            "aten.add.Tensor": 1,
        },
        delegates=2,
        host_operators={"aten::add.Scalar_out": 1},
        reason="the add of eps inside nn.RMSNorm stays on the host",
    ),
    Case(
        name="swiglu",
        module=lambda: SwiGlu(32, 88),
        sequences=once(f32(1, 7, 32)),
        operators={
            "et_vk.rms_norm.default": 1,
            "aten.squeeze_copy.dims": 3,
            "aten.linear.default": 3,
            "aten.view_copy.default": 3,
            "aten.sigmoid.default": 1,
            "aten.mul.Tensor": 2,
            "aten.add.Tensor": 1,
        },
    ),
    Case(
        name="diamond",
        # One value read by three operators, results joined in another order.
        module=apply(lambda x: (torch.exp(x) - x) * torch.sigmoid(x) + x),
        sequences=once(f32(3, 11)),
        operators={
            "aten.exp.default": 1,
            "aten.sub.Tensor": 1,
            "aten.sigmoid.default": 1,
            "aten.mul.Tensor": 1,
            "aten.add.Tensor": 1,
        },
    ),
    Case(
        name="output_twice",
        # An output that other operators read, an input returned as it is.
        module=apply(lambda x: (x + x, torch.relu(x + x), (x + x) * x)),
        sequences=once(f32(3, 5)),
        operators={"aten.add.Tensor": 3, "aten.relu.default": 1, "aten.mul.Tensor": 1},
    ),
    Case(
        name="reused_memory",
        # Lifetimes that let the planner give one memory object to tensors of several sizes.
        module=apply(
            lambda x: torch.sum(torch.exp(torch.cat([x, x + 1], 1)) * 0.5, -1) + torch.amax(x, -1)
        ),
        sequences={"in order": same_shapes((f32(5, 7),), (f32(5, 7),))},
        operators={
            "et_vk.prepack.default": 2,
            "dim_order_ops._to_dim_order_copy.default": 1,
            "aten.add.Tensor": 2,
            "aten.cat.default": 1,
            "aten.exp.default": 1,
            "aten.mul.Tensor": 1,
            "aten.sum.dim_IntList": 1,
            "aten.amax.default": 1,
        },
    ),
    Case(
        name="host_between_delegates",
        # aten::cumsum has no Vulkan operator: host work between two delegates.
        module=apply(lambda x: torch.relu(torch.cumsum(x * 0.5, -1))),
        sequences=once(f32(3, 7)),
        operators={"et_vk.prepack.default": 1, "aten.mul.Tensor": 1, "aten.relu.default": 1},
        delegates=2,
        host_operators={"aten::cumsum.out": 1},
        reason="cumsum has no Vulkan operator",
    ),
    Case(
        name="argmax_of_linear",
        module=lambda: nn.Sequential(fill(nn.Linear(16, 37)), nn.Softmax(-1), Argmax()),
        sequences=once(f32(5, 16)),
        operators={
            "aten.linear.default": 1,
            "aten._softmax.default": 1,
            "aten.argmax.default": 1,
        },
    ),
    Case(
        name="int_chain",
        module=apply(lambda x: (x + 3) * x - 7),
        sequences=once(i32(3, 5)),
        operators={
            "et_vk.prepack.default": 2,
            "dim_order_ops._to_dim_order_copy.default": 2,
            "aten.add.Tensor": 1,
            "aten.mul.Tensor": 1,
            "aten.sub.Tensor": 1,
        },
    ),
]
