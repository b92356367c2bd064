# SPDX-License-Identifier: BSD-3-Clause
"""`ptero inspect` against the exporter's own classes, and its behaviour on files that are none."""

from __future__ import annotations

import json
import math
import pathlib
import struct
import xml.etree.ElementTree
from collections import Counter, defaultdict

import pytest
from executorch.backends.vulkan.serialization import vulkan_graph_schema as vk
from executorch.backends.vulkan.serialization.vulkan_graph_serialize import (
    flatbuffer_to_vk_graph)
from executorch.exir import schema
from executorch.exir._serialize._flatbuffer_program import _flatbuffer_to_program

from executorch_files import ROOT, Container, file_id, files, graph_flatbuffer, program, run

DTYPES = {"BYTE": "uint8", "CHAR": "int8", "SHORT": "int16", "INT": "int32", "LONG": "int64",
          "HALF": "float16", "FLOAT": "float32", "DOUBLE": "float64", "BOOL": "bool"}
SIZES = {"bool": 1, "uint8": 1, "int8": 1, "int32": 4, "float16": 2, "float32": 4}
TESTDATA = ROOT / "testdata/pte"


def inspect(path, *options) -> str:
    done = run(program("ptero"), "inspect", path, *options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def data_files(path: pathlib.Path) -> list:
    return [word for data in sorted(path.parent.glob(f"{path.stem}.*.ptd"))
            for word in ("--data", data)]


def expect_values(reported, plan, ids):
    assert len(reported) == len(ids)
    for entry, value in zip(reported, (plan.values[i].val for i in ids), strict=True):
        if isinstance(value, schema.Tensor):
            assert entry["kind"] == "tensor"
            assert entry["dtype"] == DTYPES[value.scalar_type.name]
            assert entry["shape"] == value.sizes
            assert entry["dynamism"] == {"STATIC": "fixed", "DYNAMIC_BOUND": "bounded",
                                         "DYNAMIC_UNBOUND": "unbounded"}[value.shape_dynamism.name]
            named = [d for d in entry["dims"] if "symbol" in d or "maybe_smaller" in d]
            assert bool(named) == (entry["dynamism"] != "fixed" and max(value.sizes) > 1)
        else:
            scalar = next(iter(vars(value).values()), None)
            assert entry["value"] == scalar


def expect_graph(report, graph: vk.VkGraph):
    assert report["calls"] == len(graph.chain)
    assert report["values"] == len(graph.values)
    histogram = {op["name"]: op["count"] for op in report["operators"]}
    assert histogram == Counter(call.name for call in graph.chain)
    counts = [op["count"] for op in report["operators"]]
    assert counts == sorted(counts, reverse=True)

    values = [v.value for v in graph.values]
    for reported, ids in ((report["inputs"], graph.input_ids),
                          (report["outputs"], graph.output_ids)):
        assert [entry["shape"] for entry in reported] == [
            getattr(values[i], "dims", []) for i in ids]

    tensors = [v for v in values if isinstance(v, vk.VkTensor)]
    dtype_of = {id(t): {"FLOAT16": "float16", "FLOAT32": "float32"}.get(
        t.datatype.name, t.datatype.name.lower()) for t in tensors}
    entries, by_dtype = {}, defaultdict(lambda: {"entries": 0, "bytes": 0})
    for tensor in tensors:
        if tensor.constant_id >= 0:
            constant = graph.constants[tensor.constant_id]
            key = (constant.named_key, constant.offset, constant.length)
            if key not in entries:
                entries[key] = constant.length
                by_dtype[dtype_of[id(tensor)]]["entries"] += 1
                by_dtype[dtype_of[id(tensor)]]["bytes"] += constant.length
    assert report["constants"] == {
        "tensors": sum(t.constant_id >= 0 for t in tensors), "entries": len(entries),
        "bytes": sum(entries.values()), "by_dtype": dict(by_dtype)}

    def bytes_of(tensor):
        return SIZES[dtype_of[id(tensor)]] * math.prod(tensor.dims)

    objects, unshared = defaultdict(int), 0
    shared = [t for t in tensors if t.mem_obj_id >= 0 and t.constant_id < 0]
    for tensor in shared:
        objects[tensor.mem_obj_id] = max(objects[tensor.mem_obj_id], bytes_of(tensor))
        unshared += bytes_of(tensor)
    dedicated = [t for t in tensors if t.mem_obj_id < 0 and t.constant_id < 0]
    state = [t for t in tensors if t.mem_obj_id >= 0 and t.constant_id >= 0]
    assert report["memory"] == {
        "objects": len(objects), "object_bytes": sum(objects.values()),
        "object_tensors": len(shared), "unshared_bytes": unshared,
        "dedicated_tensors": len(dedicated), "dedicated_bytes": sum(map(bytes_of, dedicated)),
        "state_tensors": len(state), "state_bytes": sum(map(bytes_of, state))}
    assert 0 <= report["dispatches"] <= 2 * len(graph.chain) + len(graph.values)


@pytest.mark.parametrize("path", files(".pte"), ids=file_id)
def test_inspect_agrees_with_the_exporters_classes(path):
    report = json.loads(inspect(path, "--json", *data_files(path)))
    data = path.read_bytes()
    container = Container(data)
    expected = _flatbuffer_to_program(container.flatbuffer)
    assert report["format"] == "pte"
    assert report["bytes"] == len(data)
    assert report["version"] == expected.version
    assert report["segments"] == len(expected.segments)
    assert report["segment_bytes"] == sum(s.size for s in expected.segments)
    assert report["named_data"] == len(expected.named_data or [])
    assert report["flatbuffer_bytes"] == container.program_size
    assert report["extended_header"] == container.has_header
    assert [m["name"] for m in report["methods"]] == [p.name for p in expected.execution_plan]
    for method, plan in zip(report["methods"], expected.execution_plan, strict=True):
        instructions = [i.instr_args for chain in plan.chains for i in chain.instructions]
        expect_values(method["inputs"], plan, plan.inputs)
        expect_values(method["outputs"], plan, plan.outputs)
        assert method["constant"] == (not instructions)
        assert method["instructions"] == len(instructions)
        assert method["delegate_calls"] == sum(
            isinstance(i, schema.DelegateCall) for i in instructions)
        assert method["planned_bytes"] == sum(plan.non_const_buffer_sizes)
        names = [f"{op.name}.{op.overload}" if op.overload else op.name for op in plan.operators]
        assert {op["name"]: op["count"] for op in method["host_operators"]} == Counter(
            names[i.op_index] for i in instructions if isinstance(i, schema.KernelCall))
        assert len(method["delegates"]) == len(plan.delegates)
        for reported, delegate in zip(method["delegates"], plan.delegates, strict=True):
            expect_delegate(reported, delegate, expected, container)


def expect_delegate(reported, delegate, expected, container):
    assert reported["backend"] == delegate.id
    assert [s["key"] for s in reported["compile_specs"]] == [s.key for s in
                                                             delegate.compile_specs]
    place = delegate.processed
    if place.location == schema.DataLocation.SEGMENT:
        segment = expected.segments[place.index]
        blob = container.segment({"offset": segment.offset, "size": segment.size})
    else:
        blob = bytes(expected.backend_delegate_data[place.index].data)
    assert reported["bytes"] == len(blob)
    if delegate.id == "VulkanBackend":
        expect_graph(reported["graph"], flatbuffer_to_vk_graph(graph_flatbuffer(blob)))
    else:
        assert reported["graph"] is None


def test_inspect_names_the_dynamic_dimension_and_the_backend_it_cannot_run():
    report = json.loads(inspect(TESTDATA / "xnnpack_add.pte", "--json"))
    assert report["obstacles"] == [
        "Delegate 0 of method forward is for the backend XnnpackBackend; this engine runs "
        "delegates of VulkanBackend."]
    text = inspect(TESTDATA / "vulkan_add.pte")
    assert "forward(float32 [<=16, <=3], float32 [<=16, <=3]) -> float32 [<=16, <=3]" in text
    assert "a_string  \"h\u00e9llo\"" in text
    assert "ints      1, 2, 3" in text


def test_inspect_shows_bundled_programs_and_data_files():
    report = json.loads(inspect(TESTDATA / "bundled_add.bpte", "--json"))
    assert report["format"] == "bpte"
    assert report["bundled"] == [{"name": "forward", "cases": 2, "bytes": 2 * 3 * 24}]
    assert report["methods"][0]["delegates"][0]["graph"]["calls"] == 1

    [data] = TESTDATA.glob("external_linear.*.ptd")
    report = json.loads(inspect(data, "--json"))
    assert {e["key"]: (e["bytes"], e["tensor"]["dtype"], e["tensor"]["shape"])
            for e in report["entries"]} == {"linear.weight": (128, "float32", [4, 8]),
                                            "linear.bias": (16, "float32", [4])}


def test_the_call_list_is_readable():
    assert inspect(TESTDATA / "bundled_add.bpte", "--ops") == (
        "method forward\n"
        "    0  call delegate 0(%0, %1, %2)\n"
        "\n"
        "delegate 0 of forward (VulkanBackend)\n"
        "  in   %0 f32 [2, 3], %1 f32 [2, 3]\n"
        "    0  aten.add.Tensor(%0, %1, 1) -> %3 f32 [2, 3]\n"
        "  out  %3 f32 [2, 3]\n")


def test_the_drawing_is_an_svg_with_every_operator(tmp_path):
    path = ROOT / "testdata/models/chains/swiglu.pte"
    done = run(program("ptero"), "inspect", path, "--graph", tmp_path / "out.svg")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = "".join(xml.etree.ElementTree.parse(tmp_path / "out.svg").getroot().itertext())
    report = json.loads(inspect(path, "--json"))
    names = {op["name"].split(".")[-2] for op in
             report["methods"][0]["delegates"][0]["graph"]["operators"]
             if op["family"] in ("linear", "elementwise")}
    assert len(names) >= 3
    for name in names:
        assert name in text


def test_without_graphviz_one_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run(program("ptero"), "inspect", TESTDATA / "vulkan_add.pte", "--graph",
               tmp_path / "out.svg")
    assert done.returncode == 4
    assert "The program dot of Graphviz is not installed" in done.stderr
    assert not (tmp_path / "out.svg").exists()


def bad_files(folder: pathlib.Path):
    good = (TESTDATA / "vulkan_add.pte").read_bytes()
    return {
        "missing": (None, "cannot be opened (No such file or directory)."),
        "empty": (b"", "is empty."),
        "model.gguf": (b"GGUF" + bytes(60), "is a GGUF model;"),
        "model.pt2": (b"PK\x03\x04" + bytes(60), "is a zip archive"),
        "model.safetensors": (struct.pack("<Q", 2) + b"{}", "is a safetensors file;"),
        "text.pte": (b"hello, world, this is text", "is not an ExecuTorch file"),
        "cut.pte": (good[:-1], "is cut off"),
        "head.pte": (good[:40], None),
    }


@pytest.mark.parametrize("name", list(bad_files(pathlib.Path())))
def test_other_files_get_one_clear_sentence(name, tmp_path):
    data, sentence = bad_files(tmp_path)[name]
    if data is not None:
        (tmp_path / name).write_bytes(data)
    done = run(program("ptero"), "inspect", tmp_path / name)
    assert done.returncode in (3, 5)
    assert done.stdout == ""
    assert str(tmp_path / name) in done.stderr
    assert done.stderr.startswith("ptero: ")
    if sentence:
        assert sentence in done.stderr


def test_a_folder_is_no_file(tmp_path):
    done = run(program("ptero"), "inspect", tmp_path)
    assert done.returncode == 5
    assert done.stderr.startswith(f"ptero: {tmp_path} is not a regular file.")


def test_a_missing_weight_file_is_named():
    done = run(program("ptero"), "inspect", TESTDATA / "vulkan_add.pte", "--data", "none.ptd")
    assert done.returncode == 5
    assert "none.ptd" in done.stderr
