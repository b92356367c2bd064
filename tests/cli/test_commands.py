# SPDX-License-Identifier: BSD-3-Clause
"""What a person sees at the command line: facts, one clear sentence for bad input, exit statuses."""

import subprocess
import sys

import pytest

from conftest import ROOT


def sentence(result):
    """The error, without the warning that a software adapter brings."""
    lines = [line for line in result.stderr.splitlines() if "software adapter" not in line]
    assert lines and lines[0].startswith("ptero: "), result.stderr
    return lines[0]


def test_version_names_everything_that_a_bug_report_needs(ptero):
    result = ptero("--version")
    lines = result.stdout.splitlines()
    assert result.returncode == 0
    assert lines[0].startswith("ptero ")
    assert lines[1].startswith("Dawn ")
    assert lines[2].startswith("adapter: ")


def test_devices_lists_fast_paths_and_why_not(ptero):
    status, report = ptero.json("devices")
    assert status == 0
    paths = {path["name"]: path for path in report["adapters"][0]["fast_paths"]}
    everything = ptero.adapter == "lavapipe"
    assert paths["half precision"]["allowed"] == everything
    assert paths["matrix units"]["allowed"] == everything
    if not everything:
        assert paths["half precision"]["missing"] == "the adapter does not offer shader-f16"
    text = ptero("devices").stdout
    assert "a software adapter" in text
    assert "CPU runtime" in text


def test_an_off_switch_shows_in_the_fast_paths(ptero):
    _, report = ptero.json("devices", "--disable", "subgroups,immediates")
    missing = {path["name"]: path["missing"] for path in report["adapters"][0]["fast_paths"]}
    assert missing["subgroup reductions"] == "subgroups is switched off"
    assert missing["immediates"] == "immediates is switched off"


def test_the_environment_chooses_and_the_flag_wins(ptero):
    assert ptero("devices", PTERO_ADAPTER="nobody").returncode == 2
    assert ptero("devices", "--adapter", "0", PTERO_ADAPTER="nobody").returncode == 0


@pytest.mark.parametrize("off", [
    "", "shader-f16", "subgroups", "subgroup-matrix", "packed-dot", "timestamps", "immediates",
])
def test_selfcheck_passes_with_each_feature_off(ptero, off):
    result = ptero("selfcheck", *(["--disable", off] if off else []))
    assert result.returncode == 0, result.stdout + result.stderr
    assert " 0 failed" in result.stdout
    assert "order of 1,000 dispatches" in result.stdout
    assert "a CPU runtime" in result.stderr.lower() or "CPU runtime" in result.stderr


@pytest.mark.parametrize("command", ["run", "verify", "generate", "chat", "bench"])
def test_help_lists_the_options_of_planning(ptero, command):
    text = ptero(command, "--help").stdout
    for words in ["--option", "q4_gemm=auto|", "steel_f16_packed", "sdpa_route=auto|",
                  "enable_f16_accumulate_gemm=false|true", "enable_f16_kv_cache=false|true",
                  "sdpa_query_tile=0|"]:
        assert words in text


@pytest.mark.parametrize("option, words", [
    ("q4_gem=tile", "enable_f16_kv_cache"),
    ("q4_gemm=fast", "steel_f16_accumulate"),
])
def test_an_unknown_option_is_refused_with_those_there_are(ptero, option, words):
    models = ROOT / "testdata" / "models"
    result = ptero("verify", models / "manifest.json", "--option", option)
    assert result.returncode == 2
    assert words in sentence(result)


@pytest.mark.parametrize("arguments, status, words", [
    (["frob"], 2, "frob"),
    (["devices", "--adapter", "7"], 2, "index (7)"),
    (["devices", "--adapter", "nobody"], 2, "(nobody)"),
    (["selfcheck", "--disable", "warp"], 2, "(warp)"),
    (["run", "/nonexistent.pte"], 5, "/nonexistent.pte"),
    (["verify", "/nonexistent.json"], 5, "/nonexistent.json"),
])
def test_wrong_usage_gets_one_sentence_and_a_status(ptero, arguments, status, words):
    result = ptero(*arguments)
    assert result.returncode == status
    assert words in sentence(result)


def test_a_machine_without_adapter_is_told_what_to_install(ptero_without_adapter):
    result = ptero_without_adapter("devices")
    assert result.returncode == 4
    assert "no WebGPU adapter" in result.stderr
    assert ptero_without_adapter("--version").returncode == 0


def test_the_table_of_operators_is_what_the_program_runs(ptero):
    """Models and cases that it names run in test_models.py and in ctest, on both adapters."""
    check = subprocess.run([sys.executable, ROOT / "tools" / "operators.py", ROOT / "build" / "ci",
                            "--check"], capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stderr
    text = ptero("operators").stdout
    assert "  et_vk.rms_norm.default\n" in text
    assert "  aten::copy_\n" in text
