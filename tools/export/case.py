# SPDX-License-Identifier: BSD-3-Clause
"""What a test model is: a declaration, from which everything else is generated."""

from __future__ import annotations

import collections
import dataclasses
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

ATOL = 1e-4
RTOL = 1e-3

_SHORT = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
}

# Random floats are multiples of this step, so that the bytes depend neither on how a CPU draws
# normal numbers nor on how it rounds. 15 bits keep values short of looking like small integers.
_FLOAT_STEP = 1.0 / 4096.0


@dataclasses.dataclass(frozen=True)
class Input:
    """One tensor fed to a model. Its bytes follow from these fields alone.

    `low` and `high` bound the random values: [low, high) for floats, [low, high] for integers.
    `slot` tells apart tensors that agree in all else. `values`, when given, are the data.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    low: float = -4
    high: float = 4
    slot: int = 0
    values: tuple[Any, ...] | None = None

    @property
    def file(self) -> str:
        """Path inside the model folder; equal inputs of different cases share one file."""
        parts = [_SHORT[self.dtype], "x".join(map(str, self.shape)) or "scalar"]
        if self.values is not None:
            parts.append(f"v{zlib.crc32(repr(self.values).encode()):08x}")
        elif self.dtype != torch.bool and (self.low, self.high) != (-4, 4):
            parts.append(f"{self.low:g}to{self.high:g}")
        return f"inputs/{'_'.join(parts)}.{self.slot}.bin"

    def tensor(self) -> torch.Tensor:
        if self.values is not None:
            return torch.tensor(self.values, dtype=self.dtype).reshape(self.shape)
        generator = torch.Generator().manual_seed(zlib.crc32(self.file.encode()))
        if self.dtype.is_floating_point:
            low, high = round(self.low / _FLOAT_STEP), round(self.high / _FLOAT_STEP)
            drawn = torch.randint(low, high, self.shape, generator=generator)
            return (drawn.double() * _FLOAT_STEP).to(self.dtype)
        low, high = (0, 1) if self.dtype == torch.bool else (int(self.low), int(self.high))
        return torch.randint(low, high + 1, self.shape, generator=generator).to(self.dtype)


def f32(*shape: int, low: float = -4, high: float = 4, slot: int = 0) -> Input:
    return Input(torch.float32, shape, low, high, slot)


def i32(*shape: int, low: int = -100, high: int = 100, slot: int = 0) -> Input:
    return Input(torch.int32, shape, low, high, slot)


def i64(*shape: int, low: int = -100, high: int = 100, slot: int = 0) -> Input:
    return Input(torch.int64, shape, low, high, slot)


def boolean(*shape: int, slot: int = 0) -> Input:
    return Input(torch.bool, shape, slot=slot)


def values(dtype: torch.dtype, data: Sequence[Any], *shape: int) -> Input:
    """Exactly these values; the shape is [len(data)] unless given."""
    return Input(dtype, shape or (len(data),), values=tuple(data))


Step = tuple[Input, ...]


def same_shapes(*steps: Step) -> tuple[Step, ...]:
    """Steps with the slot of every input raised by the step's index: same shapes, fresh data."""
    return tuple(
        tuple(dataclasses.replace(x, slot=x.slot + 10 * k) for x in step)
        for k, step in enumerate(steps)
    )


@dataclasses.dataclass(frozen=True)
class Dim:
    """A dimension that may take any length in [low, high] at run time."""

    name: str
    high: int
    low: int = 1


@dataclasses.dataclass(frozen=True)
class Control:
    """A sequence whose goldens are wrong on purpose: what a certain fault would compute.

    It feeds what sequence `of` feeds. A runtime that agrees with all of its goldens has the fault,
    and a test that cannot tell them from the right ones is worth nothing.
    """

    of: str
    reference: Callable[[torch.nn.Module], Callable[..., Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """One exported model, what to feed it and what its file must look like.

    `module` builds the model; it must not depend on global random state (see modules.fill).
    `sequences` maps a name to steps that run in order on one freshly loaded model.
    `dynamic` holds, for every input, the dimensions that vary: ({1: Dim("s", 32)}, {}).
    `operators` and `host_operators` are how often each operator must occur inside all delegates
    and outside of them. `reason` is owed for more or fewer than one delegate, for host operators
    and for tolerances of its own.
    `stateful` says that a step depends on those before it, so that its lengths have an order.
    `copies_only` says that nothing is computed: a runner that aliases views may have no dispatches.
    `reference` turns the module into the callable that is evaluated in float64; without it a copy
    of the module in double precision is. Eager float32 must agree with it within `agreement`
    (absolute, relative: either suffices).
    `controls` are sequences of which at least one output must differ beyond the tolerance.
    """

    name: str
    module: Callable[[], torch.nn.Module]
    sequences: Mapping[str, tuple[Step, ...]]
    operators: Mapping[str, int]
    dynamic: tuple[Mapping[int, Dim], ...] | None = None
    delegates: int = 1
    host_operators: Mapping[str, int] = dataclasses.field(default_factory=dict)
    atol: float = ATOL
    rtol: float = RTOL
    agreement: tuple[float, float] = (ATOL / 10, RTOL / 10)
    reason: str = ""
    reference: Callable[[torch.nn.Module], Callable[..., Any]] | None = None
    controls: Mapping[str, Control] = dataclasses.field(default_factory=dict)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    stateful: bool = False
    copies_only: bool = False
    big: bool = False

    def __post_init__(self) -> None:
        plain = self.delegates == 1 and not self.host_operators
        if not (plain and (self.atol, self.rtol) == (ATOL, RTOL)) and not self.reason:
            raise ValueError(f"case {self.name} departs from the rules without a reason")
        if not self.sequences or not all(self.sequences.values()):
            raise ValueError(f"case {self.name} runs nothing")
        if not {control.of for control in self.controls.values()} <= self.sequences.keys():
            raise ValueError(f"case {self.name} has a control of a sequence that is not there")

    @property
    def all_sequences(self) -> dict[str, tuple[Step, ...]]:
        """The sequences, then those that the controls repeat."""
        repeated = {name: self.sequences[control.of] for name, control in self.controls.items()}
        return {**self.sequences, **repeated}

    @property
    def example(self) -> Step:
        """The step that the exporter traces: the largest, because length 1 would specialise."""
        steps = [step for steps in self.sequences.values() for step in steps]
        return max(steps, key=lambda step: sum(x.tensor().numel() for x in step))


def once(*inputs: Input) -> dict[str, tuple[Step, ...]]:
    """The usual single sequence of a single step."""
    return {"in order": (inputs,)}


def in_order(*steps: Step) -> dict[str, tuple[Step, ...]]:
    return {"in order": steps}


def live(
    step: Callable[[int], Step], lengths: Sequence[int] = (5, 1, 8, 1, 13, 2)
) -> dict[str, tuple[Step, ...]]:
    """One loaded model at several lengths: grown, shrunk, grown to the bound; then backwards.

    A length that comes back gets fresh data, so that an output left from its first time shows.
    """
    seen: collections.Counter[int] = collections.Counter()
    steps = []
    for length in lengths:
        shift = 10 * seen[length]
        seen[length] += 1
        steps.append(tuple(dataclasses.replace(x, slot=x.slot + shift) for x in step(length)))
    return {"in order": tuple(steps), "reversed": tuple(reversed(steps))}
