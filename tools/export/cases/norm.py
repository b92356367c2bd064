# SPDX-License-Identifier: BSD-3-Clause
"""Normalisation."""

import torch
from torch import nn

from tools.export.case import Case, Dim, f32, in_order, once
from tools.export.modules import fill, weight


class RmsNorm(nn.Module):
    """The form that the partitioner fuses into et_vk.rms_norm."""

    def __init__(self, width: int, eps: float = 1e-5, square=lambda x: x * x) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + weight("rms", width, scale=0.5))
        self.eps = eps
        self.square = square

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt(self.square(x).mean(-1, keepdim=True) + self.eps)
        return (x * scale) * self.weight


class RmsNorms(nn.Module):
    """One norm for every input."""

    def __init__(self, *widths: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(RmsNorm(width) for width in widths)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(norm(x) for norm, x in zip(self.norms, inputs))


CASES = [
    Case(
        name="rms_norm",
        module=lambda: RmsNorms(64, 1, 7, 67, 128),
        sequences=once(f32(1, 7, 64), f32(3, 1), f32(7), f32(2, 3, 67), f32(1, 2, 3, 128)),
        operators={"et_vk.rms_norm.default": 5},
    ),
    Case(
        name="rms_norm_pow_eps",
        module=lambda: RmsNorm(24, eps=0.5, square=lambda x: x.pow(2)),
        sequences=once(f32(5, 24)),
        operators={"et_vk.rms_norm.default": 1},
    ),
    Case(
        name="rms_norm_tiny_values",
        module=lambda: RmsNorm(32, eps=1e-6),
        # The mean of squares is of the order of eps.
        sequences=once(f32(3, 32, low=-0.00390625, high=0.00390625)),
        operators={"et_vk.rms_norm.default": 1},
    ),
    Case(
        name="rms_norm_wide",
        module=lambda: RmsNorm(2049),
        sequences=once(f32(2, 2049)),
        operators={"et_vk.rms_norm.default": 1},
    ),
    Case(
        name="rms_norm_two_grids",
        module=lambda: RmsNorm(4),
        sequences=once(f32(65537, 4)),
        operators={"et_vk.rms_norm.default": 1},
        big=True,
    ),
    Case(
        name="layer_norm",
        module=lambda: fill(nn.LayerNorm(64)),
        sequences=once(f32(2, 7, 64)),
        operators={"aten.native_layer_norm.default": 1},
    ),
    Case(
        name="layer_norm_odd_plain",
        module=lambda: nn.LayerNorm(37, eps=1e-3, elementwise_affine=False),
        sequences=once(f32(5, 37)),
        operators={"aten.native_layer_norm.default": 1},
    ),
]
