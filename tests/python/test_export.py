# SPDX-License-Identifier: BSD-3-Clause
"""The committed test models agree with their declarations, their manifest and themselves.

Exporting is not repeated here: `python -m tools.export --check` does that, in minutes.
"""

from __future__ import annotations

import collections
import json
import math
import pathlib
import sys

import numpy
import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.export import build, golden, inspection, registry  # noqa: E402
from tools.export.case import Case  # noqa: E402

FOLDER = ROOT / "testdata" / "models"
ENTRIES = build.read_manifest(FOLDER)
CASES = {case.name: (family, case) for family, case in registry.select(big=False)}
SIZE_LIMIT = 6 << 20

DTYPES = {
    "float32": numpy.float32,
    "float16": numpy.float16,
    "int64": numpy.int64,
    "int32": numpy.int32,
    "int8": numpy.int8,
    "uint8": numpy.uint8,
    "bool": numpy.bool_,
}


def tensors(entry: build.Entry, kinds: tuple[str, ...] = ("inputs", "outputs")):
    for sequence in entry["sequences"]:
        for step in sequence["steps"]:
            for kind in kinds:
                yield from step[kind]


def read(tensor: dict) -> numpy.ndarray:
    return numpy.fromfile(FOLDER / tensor["file"], DTYPES[tensor["dtype"]])


def test_manifest_and_registry_list_the_same_cases_in_the_same_order():
    assert list(ENTRIES) == list(CASES)
    assert len(ENTRIES) > 100


def test_manifest_has_the_shared_format():
    manifest = json.loads((FOLDER / build.MANIFEST).read_text())
    assert manifest["version"] == 1
    for model in manifest["models"]:
        assert {"name", "pte", "atol", "rtol", "sequences"} <= model.keys()
        for tensor in tensors(model):
            assert tensor.keys() == {"file", "dtype", "shape"}


def test_every_file_is_listed_and_every_listed_file_exists():
    listed = {build.MANIFEST}.union(*map(build.files_of, ENTRIES.values()))
    present = {p.relative_to(FOLDER).as_posix() for p in FOLDER.rglob("*") if p.is_file()}
    assert present == listed


def test_the_folder_stays_small():
    assert sum(p.stat().st_size for p in FOLDER.rglob("*") if p.is_file()) < SIZE_LIMIT


def test_goldens_of_different_cases_are_not_all_alike():
    files = {t["file"] for entry in ENTRIES.values() for t in tensors(entry, ("outputs",))}
    contents = collections.Counter((FOLDER / file).read_bytes() for file in files)
    assert len(contents) > 0.7 * sum(contents.values())


@pytest.mark.parametrize("name", ENTRIES)
def test_entry_repeats_the_declaration(name):
    family, case = CASES[name]
    entry = ENTRIES[name]
    assert entry["family"] == family
    assert entry["pte"] == f"{family}/{name}.pte"
    assert (entry["atol"], entry["rtol"]) == (case.atol, case.rtol)
    assert entry["operators"] == dict(case.operators)
    assert entry["host_operators"] == dict(case.host_operators)
    assert entry["delegates"] == case.delegates
    assert sum(case.operators.values()) > 0
    described = {
        sequence["name"]: [[x["file"] for x in step["inputs"]] for step in sequence["steps"]]
        for sequence in entry["sequences"]
    }
    declared = {
        sequence: [[x.file for x in step] for step in steps]
        for sequence, steps in case.all_sequences.items()
    }
    assert described == declared
    expected = {s["name"]: s.get("expect") for s in entry["sequences"]}
    assert expected == {s: "differs" if s in case.controls else None for s in declared}


@pytest.mark.parametrize("name", ENTRIES)
def test_tensor_files_hold_finite_values_of_their_shape(name):
    for tensor in tensors(ENTRIES[name]):
        data = read(tensor)
        size = (FOLDER / tensor["file"]).stat().st_size
        assert size == math.prod(tensor["shape"]) * numpy.dtype(DTYPES[tensor["dtype"]]).itemsize
        assert all(isinstance(n, int) and n > 0 for n in tensor["shape"])
        if data.dtype.kind == "f":
            assert numpy.isfinite(data).all()
        if data.dtype == numpy.bool_:
            assert data.view(numpy.uint8).max() <= 1


@pytest.mark.parametrize("name", ENTRIES)
def test_inputs_are_what_the_generator_draws(name):
    for steps in CASES[name][1].sequences.values():
        for step in steps:
            for x in step:
                assert (FOLDER / x.file).read_bytes() == build.to_bytes(x.tensor())


@pytest.mark.parametrize("name", ENTRIES)
def test_no_output_is_all_zero(name):
    for tensor in tensors(ENTRIES[name], ("outputs",)):
        data = read(tensor)
        assert data.any() or data.size < 8, tensor["file"]


@pytest.mark.parametrize("name", ENTRIES)
def test_program_holds_what_the_case_declares(name):
    found = inspection.inspect((FOLDER / ENTRIES[name]["pte"]).read_bytes())
    build.check_contents(CASES[name][1], found)
    for graph in found.graphs:
        for call in graph.chain:
            assert all(0 <= value < len(graph.values) for value in call.args)


def test_controls_repeat_the_inputs_of_another_sequence_and_differ_from_its_goldens():
    controls = [(name, control) for name in ENTRIES for control in CASES[name][1].controls.items()]
    assert len(controls) >= 8
    for name, (title, control) in controls:
        sequences = {s["name"]: s["steps"] for s in ENTRIES[name]["sequences"]}
        different = False
        for wrong, right in zip(sequences[title], sequences[control.of], strict=True):
            assert wrong["inputs"] == right["inputs"]
            for got, want in zip(wrong["outputs"], right["outputs"], strict=True):
                got, want = torch.from_numpy(read(got)), torch.from_numpy(read(want))
                different = different or golden.differs(CASES[name][1], got, want)
        assert different, f"{name}, {title}"


def test_a_departure_without_a_reason_is_refused():
    template = next(case for _, case in CASES.values() if not case.reason)
    fields = {
        "name": "x",
        "module": template.module,
        "sequences": template.sequences,
        "operators": template.operators,
    }
    Case(**fields)
    for departure in ({"delegates": 2}, {"host_operators": {"aten::add.out": 1}}, {"atol": 1.0}):
        with pytest.raises(ValueError, match="without a reason"):
            Case(**fields, **departure)
