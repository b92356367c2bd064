# SPDX-License-Identifier: BSD-3-Clause
"""Our schemas and our writers against ExecuTorch's own tools."""

from __future__ import annotations

import hashlib

import pytest
import torch
from executorch.runtime import Runtime, Verification

from executorch_files import (OURS, ROOT, THEIRS, Container, decode, file_id, files,
                              graph_flatbuffer, program, run)

PROGRAMS = files(".pte")


@pytest.mark.parametrize("path", PROGRAMS, ids=file_id)
def test_our_schemas_say_of_a_program_what_theirs_do(path):
    container = Container(path.read_bytes())
    for options in ([], ["--defaults-json"]):
        theirs = decode(THEIRS["program"], container.flatbuffer, *options)
        assert decode(OURS["program"], container.flatbuffer, *options) == theirs
        for backend, blob, _ in container.delegates(theirs):
            if backend == "VulkanBackend":
                graph = graph_flatbuffer(blob)
                assert (decode(OURS["vkgraph"], graph, *options) ==
                        decode(THEIRS["vkgraph"], graph, *options))


@pytest.mark.parametrize("path", files(".ptd"), ids=file_id)
def test_our_schema_says_of_a_data_file_what_theirs_does(path):
    data = path.read_bytes()
    for options in ([], ["--defaults-json"]):
        assert (decode(OURS["flat_tensor"], data, *options) ==
                decode(THEIRS["flat_tensor"], data, *options))


@pytest.mark.parametrize("path", files(".bpte"), ids=file_id)
def test_our_schema_says_of_a_bundled_program_what_theirs_does(path):
    data = path.read_bytes()
    for options in ([], ["--defaults-json"]):
        assert (decode(OURS["bundled_program"], data, *options) ==
                decode(THEIRS["bundled_program"], data, *options))


def meaning(data: bytes) -> dict:
    """All that a .pte says, without where it says it."""
    container = Container(data)
    decoded = decode(THEIRS["program"], container.flatbuffer)
    delegates = container.delegates(decoded)
    segments = [hashlib.sha256(container.segment(s)).hexdigest() for s in decoded["segments"]]
    graphs = []
    for backend, blob, segment in delegates:
        if backend == "VulkanBackend":
            graphs.append(decode(THEIRS["vkgraph"], graph_flatbuffer(blob)))
            if segment is not None:
                segments[segment] = "a graph"
    decoded["segments"] = segments
    # Inline blobs are graphs too, compared above.
    decoded["backend_delegate_data"] = len(decoded["backend_delegate_data"])
    return {"program": decoded, "graphs": graphs}


def rewrite(path, folder) -> bytes:
    done = run(program("tests/pte_rewrite"), path, folder / "out")
    assert done.returncode == 0, done.stderr
    return (folder / "out").read_bytes()


@pytest.mark.parametrize("path", PROGRAMS, ids=file_id)
def test_what_we_write_says_the_same_and_is_accepted_by_the_runtime(path, tmp_path):
    original = path.read_bytes()
    written = rewrite(path, tmp_path)
    assert meaning(written) == meaning(original)
    assert Container(written).has_header == Container(original).has_header or (
        not any(Container(original).segment(s) for s in decode(
            THEIRS["program"], Container(original).flatbuffer)["segments"]))
    loaded = Runtime.get().load_program(tmp_path / "out",
                                        verification=Verification.InternalConsistency)
    expected = Runtime.get().load_program(path, verification=Verification.InternalConsistency)
    assert loaded.method_names == expected.method_names


@pytest.mark.parametrize("path", files(".ptd"), ids=file_id)
def test_a_data_file_that_we_write_says_the_same(path, tmp_path):
    from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer
    written = rewrite(path, tmp_path)
    assert decode(THEIRS["flat_tensor"], written) == decode(THEIRS["flat_tensor"],
                                                            path.read_bytes())
    ours = FlatTensorSerializer().deserialize(written)
    theirs = FlatTensorSerializer().deserialize(path.read_bytes())
    assert ours.buffers == theirs.buffers
    assert ours.named_data == theirs.named_data


def test_constant_methods_of_a_written_file_return_the_same_values(tmp_path):
    path = ROOT / "testdata/pte/vulkan_add.pte"
    rewrite(path, tmp_path)
    loaded = Runtime.get().load_program(tmp_path / "out")
    values = {name: loaded.load_method(name).execute([])
              for name in loaded.method_names if name != "forward"}
    assert values == {"an_int": [7], "a_double": [0.25], "a_bool": [True],
                      "a_string": ["h\u00e9llo"], "ints": [1, 2, 3]}


@pytest.mark.parametrize("name, inputs", [
    ("portable_linear", [torch.arange(16, dtype=torch.float32).reshape(2, 8)]),
    ("portable_state", [torch.tensor([1.0, 2.0, 3.0, 4.0])]),
    ("portable_branch", [torch.tensor(True), torch.tensor([1.0, 2.0, 3.0])]),
    ("portable_branch", [torch.tensor(False), torch.tensor([1.0, 2.0, 3.0])]),
])
def test_a_written_file_computes_the_same(name, inputs, tmp_path):
    path = ROOT / f"testdata/pte/{name}.pte"
    rewrite(path, tmp_path)
    results = []
    for file in (path, tmp_path / "out"):
        method = Runtime.get().load_program(file).load_method("forward")
        results.append([[out.clone() for out in method.execute([t.clone() for t in inputs])]
                        for _ in range(2)])
    for expected, actual in zip(*results, strict=True):
        assert len(expected) == len(actual) > 0
        for a, b in zip(expected, actual, strict=True):
            assert torch.equal(a, b)
            assert a.abs().sum() > 0
