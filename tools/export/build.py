# SPDX-License-Identifier: BSD-3-Clause
"""Writes the files of cases and the manifest that describes them."""

from __future__ import annotations

import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import torch

from tools.export import golden, inspection, lowering, registry
from tools.export.case import Case

MANIFEST = "manifest.json"

Entry = dict[str, Any]


class Unexpected(Exception):
    """The exported file does not contain what its case declares."""


def build_case(family: str, case: Case, out: pathlib.Path) -> Entry:
    """Exports one case into `out` and returns its entry of the manifest."""
    data = lowering.lower(case)
    check_contents(case, inspection.inspect(data))
    _write(out / family / f"{case.name}.pte", data)
    written: dict[bytes, str] = {}
    sequences = []
    expected = {name: golden.goldens(case, steps) for name, steps in case.sequences.items()}
    expected |= {name: golden.of_control(case, each) for name, each in case.controls.items()}
    for name, steps in case.all_sequences.items():
        described = []
        for step, outputs in zip(steps, expected[name]):
            for x in step:
                _write(out / x.file, to_bytes(x.tensor()))
            files = []
            for tensor in outputs:
                blob = to_bytes(tensor)
                file = written.setdefault(blob, f"{family}/{case.name}.out{len(written)}.bin")
                _write(out / file, blob)
                files.append(_tensor(file, tensor))
            inputs = [_tensor(x.file, x.tensor()) for x in step]
            described.append({"inputs": inputs, "outputs": files})
        expect = {"expect": "differs"} if name in case.controls else {}
        sequences.append({"name": name, **expect, "steps": described})
    return {
        "name": case.name,
        "family": family,
        "pte": f"{family}/{case.name}.pte",
        "atol": case.atol,
        "rtol": case.rtol,
        "operators": dict(case.operators),
        "host_operators": dict(case.host_operators),
        "delegates": case.delegates,
        **({"copies_only": True} if case.copies_only else {}),
        "sequences": sequences,
    }


def check_contents(case: Case, found: inspection.Inspection) -> None:
    compared = (
        ("delegates", case.delegates, found.delegates),
        ("operators", dict(case.operators), found.operators),
        ("host_operators", dict(case.host_operators), found.host_operators),
    )
    wrong = [f"{what}={declared}, not {actual}" for what, declared, actual in compared
             if declared != actual]
    if wrong:
        raise Unexpected(f"{case.name} declares other contents than its file has: "
                         + "; ".join(wrong))


def to_bytes(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().numpy().tobytes()


def build(
    selected: Iterable[tuple[str, Case]],
    out: pathlib.Path,
    jobs: int,
    report: Callable[[str], None],
) -> tuple[dict[str, Entry], list[str]]:
    """Builds cases in `jobs` processes; returns entries by name and a line for each failure."""
    entries: dict[str, Entry] = {}
    failures: list[str] = []
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as pool:
        waiting = {
            pool.submit(_build_by_name, case.name, str(out)): case.name for _, case in selected
        }
        for done in concurrent.futures.as_completed(waiting):
            name = waiting[done]
            entry, error = done.result()
            if entry is None:
                failures.append(error)
                report(f"FAILED {name}: {error}")
            else:
                entries[name] = entry
                report(f"{len(entries) + len(failures)}/{len(waiting)} {name}")
    return entries, failures


def _build_by_name(name: str, out: str) -> tuple[Entry | None, str]:
    family, case = next((f, c) for f, c in registry.select() if c.name == name)
    try:
        return build_case(family, case, pathlib.Path(out)), ""
    except (Unexpected, golden.Disagreement) as error:
        return None, str(error)
    except Exception:  # whatever the exporter throws is a failure of this case only
        return None, traceback.format_exc()


def write_manifest(out: pathlib.Path, entries: dict[str, Entry]) -> None:
    """Lists `entries` in the order of the registry."""
    models = [entries[case.name] for _, case in registry.select() if case.name in entries]
    text = json.dumps({"version": 1, "models": models}, indent=1)
    _write(out / MANIFEST, (_short_lists(text) + "\n").encode())


def read_manifest(out: pathlib.Path) -> dict[str, Entry]:
    path = out / MANIFEST
    if not path.exists():
        return {}
    return {model["name"]: model for model in json.loads(path.read_text())["models"]}


def files_of(entry: Entry) -> set[str]:
    files = {entry["pte"]}
    for sequence in entry["sequences"]:
        for step in sequence["steps"]:
            files.update(tensor["file"] for tensor in step["inputs"] + step["outputs"])
    return files


def remove_unlisted(out: pathlib.Path, entries: dict[str, Entry]) -> None:
    listed = {MANIFEST}.union(*map(files_of, entries.values()))
    for path in sorted(out.rglob("*")):
        if path.is_file() and path.relative_to(out).as_posix() not in listed:
            path.unlink()


def _tensor(file: str, tensor: torch.Tensor) -> dict[str, Any]:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return {"file": file, "dtype": dtype, "shape": list(tensor.shape)}


def _short_lists(text: str) -> str:
    """Puts shapes and tensors on one line each: a fifth of the lines of indented JSON."""
    import re

    text = re.sub(r"\[\s+((?:-?\d+,?\s+)+)\]", lambda m: f"[{' '.join(m[1].split())}]", text)
    return re.sub(r'\{\s+("file":[^{}]*?)\s+\}', lambda m: "{" + " ".join(m[1].split()) + "}", text)


def _write(path: pathlib.Path, data: bytes) -> None:
    """Atomic, because several workers may write the same input."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.read_bytes() == data:
        return
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)
