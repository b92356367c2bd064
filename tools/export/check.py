# SPDX-License-Identifier: BSD-3-Clause
"""Compares a fresh export with files written earlier."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy

from tools.export import build
from tools.export.case import Case


def compare(
    selected: Iterable[tuple[str, Case]],
    fresh: pathlib.Path,
    out: pathlib.Path,
    jobs: int,
    report: Callable[[str], None],
) -> list[str]:
    """A line for every difference between a fresh export and the folder `out`.

    Programs, inputs and integer goldens must be equal byte for byte. Float goldens may differ in
    their last bit, because float64 functions of different CPUs do.
    """
    selected = list(selected)
    entries, problems = build.build(selected, fresh, jobs, report)
    committed = build.read_manifest(out)
    for name, entry in entries.items():
        if committed.get(name) != entry:
            problems.append(f"{name}: the manifest in {out} has another entry or none")
            continue
        goldens = {
            tensor["file"]: tensor
            for sequence in entry["sequences"]
            for step in sequence["steps"]
            for tensor in step["outputs"]
        }
        for file in sorted(build.files_of(entry)):
            problem = _difference(fresh / file, out / file, goldens.get(file))
            if problem:
                problems.append(f"{name}: {file} {problem}")
    return problems


def _difference(
    fresh: pathlib.Path, old: pathlib.Path, golden: dict[str, Any] | None
) -> str | None:
    if not old.exists():
        return "is missing"
    new_bytes, old_bytes = fresh.read_bytes(), old.read_bytes()
    if new_bytes == old_bytes:
        return None
    if golden is None or golden["dtype"] not in ("float32", "float16"):
        return "differs from a fresh export"
    new, was = (numpy.frombuffer(b, golden["dtype"]) for b in (new_bytes, old_bytes))
    if new.shape != was.shape:
        return "has another size than a fresh export"
    last_bit = numpy.spacing(numpy.maximum(abs(new), abs(was)))
    if not (abs(new - was) <= last_bit).all():
        return f"differs from a fresh export by {abs(new - was).max():g}"
    return None
