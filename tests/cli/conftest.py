# SPDX-License-Identifier: BSD-3-Clause
"""The optimised test build's program, on each of the two test adapters."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "ci" / "ptero"
ADAPTER_NAMES = {"lavapipe": "llvmpipe", "swiftshader": "SwiftShader"}


def driver_file(adapter):
    """The Vulkan driver file that set-up wrote down for a test adapter."""
    key = f"PTERO_{adapter.upper()}_ICD="
    for line in (ROOT / "build" / "env.sh").read_text().splitlines():
        if line.startswith(key):
            return line[len(key):].strip("'")
    raise AssertionError(f"build/env.sh has no {key}; run ./dev setup")


def pytest_report_header():
    folder = os.environ.get("PTERO_TEST_MODELS")
    return (f"PTERO_TEST_MODELS: {folder}" if folder
            else "PTERO_TEST_MODELS is not set: only the project's own models are run")


class Ptero:
    def __init__(self, adapter):
        self.adapter = adapter
        self.environment = {
            "PATH": os.environ["PATH"],
            "VK_DRIVER_FILES": driver_file(adapter) if adapter else "/nonexistent",
        }

    def __call__(self, *arguments, **variables):
        return subprocess.run(
            [PROGRAM, *map(str, arguments)],
            env=self.environment | variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def json(self, *arguments):
        return self.json_of(*arguments, "--json")

    def json_of(self, *arguments):
        result = self(*arguments)
        return result.returncode, json.loads(result.stdout)


@pytest.fixture(params=["lavapipe", "swiftshader"])
def ptero(request):
    program = Ptero(request.param)
    name = program.json("devices")[1]["adapters"][0]["name"]
    print(f"adapter: {name}")
    assert ADAPTER_NAMES[request.param] in name
    return program


@pytest.fixture
def ptero_without_adapter():
    return Ptero(None)
