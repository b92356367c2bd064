# SPDX-License-Identifier: BSD-3-Clause
"""What a person sees at the command line: facts, one clear sentence for bad input, exit statuses."""

import json
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


def test_devices_says_which_kernels_and_why(ptero):
    _, report = ptero.json("devices")
    routes = {route["work"]: route for route in report["adapters"][0]["routes"]}
    assert routes["4-bit linear, 1 to 16 rows"]["route"] == "column"
    assert "barriers" in routes["attention, few queries"]["why"]
    assert routes["products of int8"]["route"] == "packed"
    _, report = ptero.json("devices", "--disable", "packed-dot")
    routes = {route["work"]: route["route"] for route in report["adapters"][0]["routes"]}
    assert routes["products of int8"] == "plain"
    assert "sums over rows" in ptero("devices").stdout


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
    for words in ["--option", "q4_gemm=auto|", "steel_f16_packed", "|matrix", "sdpa_route=auto|",
                  "enable_f16_gemm=auto|false|true",
                  "enable_f16_accumulate_gemm=false|true", "enable_f16_kv_cache=false|true",
                  "enable_fusion=true|", "scratch_pool=true|", "adapter_routes=auto|software|gpu",
                  "sdpa_query_tile=0|"]:
        assert words in text


@pytest.mark.parametrize("option, words", [
    ("q4_gem=tile", "enable_f16_kv_cache"),
    ("q4_gemm=fast", "steel_f16_accumulate"),
    ("sdpa_query_tile=8", "0, 16, 32"),
    ("adapter_routes=tpu", "auto, software, gpu"),
    ("scratch_pool=perhaps", "true, false"),
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


KINDS = ["weights", "cache", "activations", "scratch", "staging", "uniforms", "other", "total"]
LLAMA = ROOT / "testdata" / "models" / "llama" / "llama_4w.pte"


def test_inspect_plans_memory_without_an_adapter(ptero_without_adapter):
    def planned(*options):
        result = ptero_without_adapter("inspect", "--memory", "--json", LLAMA, *options)
        assert result.returncode == 0, result.stderr
        (method,) = json.loads(result.stdout)["methods"]
        assert method["name"] == "forward"
        assert list(method["planned"]) == KINDS
        assert method["planned"]["total"] == sum(method["planned"][kind] for kind in KINDS[:-1])
        return method["planned"]
    plain = planned()
    assert min(plain["weights"], plain["cache"], plain["activations"]) > 0
    halved = planned("--option", "enable_f16_kv_cache")
    assert 2 * halved["cache"] == plain["cache"]
    scores = ["--option", "sdpa_route=materialized"]
    assert planned(*scores)["scratch"] < planned(*scores, "--option", "scratch_pool=false")["scratch"]

    text = ptero_without_adapter("inspect", "--memory", LLAMA).stdout
    assert text.startswith("method forward")
    assert all(f"  {kind} " in text for kind in KINDS[:-1])
    wrong = ptero_without_adapter("inspect", "--memory", LLAMA, "--option", "pool=1")
    assert wrong.returncode == 2
    assert "scratch_pool" in sentence(wrong)
    assert ptero_without_adapter("inspect", LLAMA, "--option", "scratch_pool=false").returncode == 2
    assert ptero_without_adapter("inspect", "--memory", "--ops", LLAMA).returncode == 2


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
