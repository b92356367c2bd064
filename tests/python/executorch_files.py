# SPDX-License-Identifier: BSD-3-Clause
"""What the tests over .pte files share: the files, our programs, and ExecuTorch's own readers."""

from __future__ import annotations

import json
import os
import pathlib
import struct
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("PTERO_BUILD_DIR", "build/ci")


def _executorch() -> pathlib.Path:
    try:
        import executorch.data.bin
    except ImportError as error:
        raise RuntimeError("ExecuTorch is not installed here; install what "
                           "tools/requirements-test.txt lists.") from error
    return pathlib.Path(executorch.data.bin.__file__).parents[2]


EXECUTORCH = _executorch()
OURS = {"program": ROOT / "schema/program.fbs",
        "vkgraph": ROOT / "schema/vkgraph.fbs",
        "flat_tensor": ROOT / "schema/flat_tensor.fbs",
        "bundled_program": ROOT / "schema/bundled_program.fbs"}
THEIRS = {"program": EXECUTORCH / "schema/program.fbs",
          "vkgraph": EXECUTORCH / "backends/vulkan/serialization/schema.fbs",
          "flat_tensor": EXECUTORCH / "extension/flat_tensor/serialize/flat_tensor.fbs",
          "bundled_program":
              EXECUTORCH / "devtools/bundled_program/schema/bundled_program_schema.fbs"}


def files(*extensions: str) -> list[pathlib.Path]:
    """Committed files, and those of PTERO_TEST_MODELS when it is set."""
    folders = [ROOT / "testdata"]
    if os.environ.get("PTERO_TEST_MODELS"):
        folders.append(pathlib.Path(os.environ["PTERO_TEST_MODELS"]))
    found = [path for folder in folders for extension in extensions
             for path in sorted(folder.rglob(f"*{extension}"))]
    assert len(found) > 0
    return found


def file_id(path: pathlib.Path) -> str:
    return "/".join(path.parts[-2:])


def program(name: str) -> pathlib.Path:
    path = BUILD / name
    if not path.exists():
        pytest.fail(f"{path} is not built; ./dev test builds it first.")
    return path


def run(*command) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, timeout=120)


def decode(schema: pathlib.Path, data: bytes, *options: str) -> dict:
    """FlatBuffers' own reading of `data`, as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        binary = pathlib.Path(folder, "data.bin")
        binary.write_bytes(data)
        flatc = EXECUTORCH / "data/bin/flatc"
        done = run(flatc, "--json", "--strict-json", "--raw-binary", *options, "-o", folder,
                   schema, "--", binary)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(pathlib.Path(folder, "data.json").read_text())


class Container:
    """A .pte split by its header, without any of our code."""

    def __init__(self, data: bytes):
        self.data = data
        self.has_header = data[8:12] == b"eh00"
        self.program_size, self.base = (struct.unpack_from("<QQ", data, 16) if self.has_header
                                        else (len(data), 0))
        self.flatbuffer = data[:self.program_size]

    def segment(self, entry: dict) -> bytes:
        start = self.base + entry.get("offset", 0)
        return self.data[start:start + entry.get("size", 0)]

    def delegates(self, decoded: dict) -> list[tuple[str, bytes, int | None]]:
        """(backend, blob, segment or None) of every delegate of every method."""
        found = []
        for plan in decoded["execution_plan"]:
            for delegate in plan["delegates"]:
                place = delegate["processed"]
                index = place.get("index", 0)
                if place.get("location") == "SEGMENT":
                    blob = self.segment(decoded["segments"][index])
                    found.append((delegate["id"], blob, index))
                else:
                    blob = bytes(decoded["backend_delegate_data"][index]["data"])
                    found.append((delegate["id"], blob, None))
        return found


def graph_flatbuffer(blob: bytes) -> bytes:
    offset, size = struct.unpack_from("<II", blob, 10)
    return blob[offset:offset + size]
