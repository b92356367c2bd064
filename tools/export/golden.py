# SPDX-License-Identifier: BSD-3-Clause
"""Expected outputs: a float64 evaluation, checked against what PyTorch computes in float32."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from tools.export.case import Case, Step


class Disagreement(Exception):
    """Eager float32 and the float64 evaluation differ by more than the case allows."""


def goldens(case: Case, steps: tuple[Step, ...]) -> list[list[torch.Tensor]]:
    """Outputs of every step, in order, on one fresh model; dtypes are those of eager PyTorch."""
    module = case.module().eval()
    reference: Callable[..., Any]
    if case.reference is not None:
        reference = case.reference(copy.deepcopy(module))
    else:
        reference = copy.deepcopy(module).double()
    expected = []
    for number, step in enumerate(steps):
        inputs = [x.tensor() for x in step]
        doubled = [x.double() if x.is_floating_point() else x.clone() for x in inputs]
        with torch.no_grad():
            eager = _flat(module(*[x.clone() for x in inputs]))
            exact = _flat(reference(*doubled))
        if len(eager) != len(exact):
            raise Disagreement(f"{case.name}: {len(eager)} outputs against {len(exact)}")
        for k, (got, want) in enumerate(zip(eager, exact)):
            _compare(f"{case.name}, step {number}, output {k}", case, got, want)
        expected.append([want.to(got.dtype) for got, want in zip(eager, exact)])
    return expected


def _flat(output: Any) -> list[torch.Tensor]:
    outputs = output if isinstance(output, (tuple, list)) else (output,)
    return [x.detach().contiguous() for x in outputs]


def _compare(what: str, case: Case, got: torch.Tensor, want: torch.Tensor) -> None:
    if got.shape != want.shape:
        raise Disagreement(f"{what}: shape {list(got.shape)} against {list(want.shape)}")
    if not got.is_floating_point():
        if not torch.equal(got, want.to(got.dtype)):
            raise Disagreement(f"{what}: integers differ")
        return
    if not torch.isfinite(want).all():
        raise Disagreement(f"{what}: a golden is not finite")
    absolute, relative = case.agreement
    error = (got.double() - want.double()).abs()
    bad = (error > absolute) & (error > relative * want.double().abs())
    if bad.any():
        raise Disagreement(f"{what}: float32 is off by {error.max():g}")
