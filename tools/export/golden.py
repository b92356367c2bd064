# SPDX-License-Identifier: BSD-3-Clause
"""Expected outputs: a float64 evaluation, checked against what PyTorch computes in float32."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from tools.export.case import Case, Control, Step


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


def of_control(case: Case, control: Control) -> list[list[torch.Tensor]]:
    """What the control's fault computes; refused unless it differs from the true goldens."""
    steps = case.sequences[control.of]
    truth = goldens(case, steps)
    faulty = control.reference(copy.deepcopy(case.module().eval()))
    wrong = []
    for step, expected in zip(steps, truth):
        doubled = [x.double() if x.is_floating_point() else x for x in (y.tensor() for y in step)]
        with torch.no_grad():
            outputs = _flat(faulty(*doubled))
        wrong.append([x.to(want.dtype) for x, want in zip(outputs, expected)])
    if not any(
        differs(case, x, want)
        for outputs, expected in zip(wrong, truth)
        for x, want in zip(outputs, expected)
    ):
        raise Disagreement(f"{case.name}: a control cannot be told from what it controls")
    return wrong


def differs(case: Case, got: torch.Tensor, want: torch.Tensor) -> bool:
    """Whether a comparison with the case's tolerances fails."""
    if not got.is_floating_point():
        return not torch.equal(got, want)
    error = (got.double() - want.double()).abs()
    return bool(((error > case.atol) & (error > case.rtol * want.double().abs())).any())


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
