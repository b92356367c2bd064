# SPDX-License-Identifier: BSD-3-Clause
"""Module building blocks shared by the cases."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import torch

from tools.export.case import Input


class Apply(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*args)


def apply(function: Callable[..., Any]) -> Callable[[], torch.nn.Module]:
    return lambda: Apply(function)


def each(function: Callable[..., Any], arity: int = 1) -> Callable[[], torch.nn.Module]:
    """Applies `function` to every group of `arity` inputs: many shapes in one file."""

    def forward(*args: torch.Tensor) -> Any:
        outputs = [function(*args[k : k + arity]) for k in range(0, len(args), arity)]
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    return apply(forward)


def all_of(*functions: Callable[..., Any]) -> Callable[[], torch.nn.Module]:
    """Applies every function to the same inputs: many variants in one file."""
    return apply(lambda *args: tuple(f(*args) for f in functions))


def weight(name: str, *shape: int, scale: float = 1.0) -> torch.Tensor:
    """Deterministic weights in [-scale, scale)."""
    seed = zlib.crc32(name.encode())
    drawn = Input(torch.float32, shape, -1, 1, slot=seed).tensor()
    return drawn * scale


def fill(module: torch.nn.Module, scale: float = 0.25) -> torch.nn.Module:
    """Overwrites every parameter and float buffer with deterministic values."""
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if tensor.is_floating_point():
                tensor.copy_(weight(name, *tensor.shape, scale=scale))
    return module
