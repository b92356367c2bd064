# SPDX-License-Identifier: BSD-3-Clause
"""Test models through `ptero verify` and `ptero run`: PyTorch's numbers on both adapters."""

import hashlib
import json
import os
import pathlib
import shutil

import pytest

from conftest import ROOT

MANIFEST = ROOT / "testdata" / "models" / "manifest.json"
MODELS = {model["name"]: model for model in json.loads(MANIFEST.read_text())["models"]}


def verify(ptero, manifest, *flags):
    status, report = ptero.json("verify", manifest, *flags)
    return status, {model["name"]: model for model in report["models"]}


def failures(results):
    return {name: result["error"] for name, result in results.items() if not result["passed"]}


@pytest.mark.parametrize("flags", [
    [],
    ["--reverse", "--poison"],
    ["--disable", "immediates"],
    ["--disable", "shader-f16,subgroups,subgroup-matrix,packed-dot,timestamps"],
    ["--max-binding", "65536"],
    ["--no-robustness"],
], ids=["plain", "reversed, outputs full of NaN", "no immediates", "no features",
        "bindings of 64 KiB", "no bounds checks"])
def test_models_give_pytorchs_numbers(ptero, flags):
    _, results = verify(ptero, MANIFEST, *flags)
    assert set(results) == set(MODELS)
    assert not failures(results)
    for name, result in results.items():
        assert result["dispatches"] > 0 or MODELS[name].get("copies_only"), name
    # One dispatch for each operator, in the order of the file.
    for length in (1, 3, 8, 32):
        chain = results[f"add_self_chain_{length}"]
        assert chain["dispatches"] == length * chain["steps"]
    assert results["rms_norm_add"]["dispatches"] == 2 * results["rms_norm_add"]["steps"]


def copy_of(model, folder):
    """A manifest of one model in a folder of its own, to be spoilt."""
    entry = json.loads(json.dumps(MODELS[model]))
    files = [entry["pte"]] + [tensor["file"] for sequence in entry["sequences"]
                              for step in sequence["steps"]
                              for tensor in step["inputs"] + step["outputs"]]
    for file in files:
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(MANIFEST.parent / file, target)
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({"version": 1, "models": [entry]}))
    return manifest, entry, folder / entry["sequences"][0]["steps"][0]["outputs"][0]["file"]


def test_a_spoilt_expectation_fails(ptero, tmp_path):
    manifest, _, expected = copy_of("add_alpha", tmp_path)
    assert verify(ptero, manifest)[0] == 0

    whole = expected.read_bytes()
    expected.write_bytes(b"\x00\x00\xc0\x7f" + whole[4:])  # NaN
    status, results = verify(ptero, manifest)
    assert status == 1
    assert "Element 0" in results["add_alpha"]["error"]

    expected.write_bytes(whole[:-4])
    status, results = verify(ptero, manifest)
    assert status == 1
    assert "Size" in results["add_alpha"]["error"]

    expected.unlink()
    status, results = verify(ptero, manifest)
    assert status == 1
    assert str(expected) in results["add_alpha"]["error"]


def test_a_spoilt_model_fails_and_the_rest_goes_on(ptero, tmp_path):
    manifest, entry, _ = copy_of("add_alpha", tmp_path)
    model = tmp_path / entry["pte"]
    broken = dict(entry, name="broken", pte="broken.pte")
    (tmp_path / "broken.pte").write_bytes(model.read_bytes()[:200])
    manifest.write_text(json.dumps({"version": 1, "models": [broken, entry]}))
    status, results = verify(ptero, manifest)
    assert status == 1
    assert not results["broken"]["passed"]
    assert results["add_alpha"]["passed"]


def test_a_control_that_agrees_fails(ptero, tmp_path):
    manifest, entry, _ = copy_of("add_alpha", tmp_path)
    entry["sequences"][0]["expect"] = "differs"
    manifest.write_text(json.dumps({"version": 1, "models": [entry]}))
    status, results = verify(ptero, manifest)
    assert status == 1
    assert "nothing differs" in results["add_alpha"]["error"]

    entry["sequences"][0]["expect"] = "rhymes"
    manifest.write_text(json.dumps({"version": 1, "models": [entry]}))
    result = ptero("verify", manifest)
    assert result.returncode != 0
    assert "rhymes" in result.stderr


def test_a_manifest_without_models_is_no_success(ptero, tmp_path):
    manifest = tmp_path / "manifest.json"
    manifest.write_text('{"version": 1, "models": []}')
    assert ptero("verify", manifest).returncode == 2
    manifest.write_text("{")
    assert ptero("verify", manifest).returncode == 2
    assert ptero("verify", MANIFEST, "--filter", "no such model").returncode == 2


def arguments_of(step):
    def argument(tensor):
        shape = "x".join(map(str, tensor["shape"]))
        return f"{MANIFEST.parent / tensor['file']}:{tensor['dtype']}:{shape}"
    return ([word for tensor in step["inputs"] for word in ("--input", argument(tensor))],
            [word for tensor in step["outputs"] for word in ("--expect", argument(tensor))])


def test_run_compares_writes_and_repeats(ptero, tmp_path):
    model = MODELS["add_alpha"]
    inputs, expected = arguments_of(model["sequences"][0]["steps"][0])
    output = tmp_path / "output.npy"
    path = MANIFEST.parent / model["pte"]
    result = ptero("run", path, *inputs, *expected, "--output", output, "--repeat", "3")
    assert result.returncode == 0, result.stderr
    assert "as expected" in result.stdout
    again = ptero("run", path, *inputs, "--expect", output, "--atol", "0", "--rtol", "0")
    assert again.returncode == 0, again.stdout + again.stderr

    first = inputs[1]
    wrong = ptero("run", path, "--input", first + "x1", *inputs[2:])
    assert wrong.returncode == 2
    assert "ptero: " in wrong.stderr
    assert ptero("run", path).returncode == 2
    assert ptero("run", path, "--method", "backward").returncode == 2


HALF, SUBGROUPS, MATRIX = "shader-f16", "subgroups", "subgroup-matrix"
# Options, models, and the features that change which kernels run, or what they are made of.
ROUTES = [
    ("adapter_routes=gpu", "linear", {HALF, SUBGROUPS, MATRIX}),
    ("adapter_routes=gpu", "llama", {HALF, SUBGROUPS, MATRIX}),
    ("adapter_routes=gpu", "sdpa", set()),
    ("adapter_routes=gpu", "attention", {HALF, MATRIX}),
    ("adapter_routes=gpu", "norm", {HALF, SUBGROUPS}),
    ("adapter_routes=software", "linear", {HALF}),
    ("adapter_routes=software", "llama", {HALF}),
    ("adapter_routes=software", "sdpa", set()),
    ("adapter_routes=software", "norm", {HALF, SUBGROUPS}),
    *((f"q4_gemm={name}", "4w", {HALF}) for name in ("any", "column", "tile", "steel")),
    *((f"q4_gemm={name}", "4w_half", {HALF}) for name in ("steel_f16", "steel_f16_packed")),
    ("q4_gemm=matrix", "4w_half", {HALF, SUBGROUPS, MATRIX}),
    *((f"sdpa_route={name}", models, features)
      for models, features in (("sdpa", set()), ("llama", {HALF}), ("qwen", set()))
      for name in ("rows", "split", "tiles", "materialized")),
    *(("sdpa_route=matrix", models, {HALF, SUBGROUPS, MATRIX})
      for models in ("attention_half", "4w_half")),
    ("sdpa_route=tiles --option sdpa_query_tile=16", "sdpa", set()),
]


# SwiftShader has neither shader-f16 nor matrices to switch off.
@pytest.mark.parametrize("ptero, off", [
    ("lavapipe", ""), ("lavapipe", HALF), ("lavapipe", SUBGROUPS), ("lavapipe", MATRIX),
    ("swiftshader", ""), ("swiftshader", SUBGROUPS),
], indirect=["ptero"])
def test_every_route_with_each_feature_off(ptero, off):
    """Kernels of GPUs run here as those of software adapters do, whatever is switched off."""
    flags = ["--disable", off] if off else []
    routes = [route for route in ROUTES if not off or off in route[2]]
    assert routes
    for option, models, _ in routes:
        _, results = verify(ptero, MANIFEST, "--filter", models, "--option", *option.split(),
                            *flags)
        assert results, models
        assert not failures(results), option


def run_llama(ptero, path, *flags, **variables):
    inputs, _ = arguments_of(MODELS["llama_8da4w"]["sequences"][0]["steps"][0])
    model = MANIFEST.parent / MODELS["llama_8da4w"]["pte"]
    result = ptero("run", model, *inputs, "--output", path, "--repeat", "2", "--memory-json",
                   *flags, **variables)
    assert result.returncode == 0, result.stderr
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("{")]
    return hashlib.sha256(path.read_bytes()).hexdigest(), json.loads(line)


@pytest.mark.parametrize("flags", [
    [], ["--option", "sdpa_route=materialized"], ["--option", "adapter_routes=gpu"],
], ids=["as chosen", "all scores", "kernels of GPUs"])
def test_sharing_scratch_changes_no_bit_and_takes_less(ptero, tmp_path, flags):
    shared, memory = run_llama(ptero, tmp_path / "a.npy", *flags)
    apart, more = run_llama(ptero, tmp_path / "b.npy", *flags, WEBGPU_NO_SCRATCH_POOL="1")
    named, same = run_llama(ptero, tmp_path / "c.npy", *flags, "--option", "scratch_pool=false")
    again, less = run_llama(ptero, tmp_path / "d.npy", *flags, "--option", "scratch_pool=true",
                            WEBGPU_NO_SCRATCH_POOL="1")
    assert shared == apart == named == again
    assert memory["scratch"]["allocated"] < more["scratch"]["allocated"]
    assert same["scratch"] == more["scratch"]
    assert less["scratch"] == memory["scratch"]


def test_run_tells_what_memory_is_for(ptero, tmp_path):
    _, memory = run_llama(ptero, tmp_path / "y.npy")
    for kind in ("weights", "cache", "activations", "scratch"):
        assert 0 < memory[kind]["planned"] <= memory[kind]["allocated"] <= memory[kind]["peak"]
    assert memory["cache"]["planned"] == memory["cache"]["allocated"]
    total = memory.pop("total")
    assert total["allocated"] == sum(kind["allocated"] for kind in memory.values())
    assert total["allocated"] <= total["peak"]
    inputs, _ = arguments_of(MODELS["add_alpha"]["sequences"][0]["steps"][0])
    text = ptero("run", MANIFEST.parent / MODELS["add_alpha"]["pte"], *inputs, "--memory").stdout
    assert "at most" in text and "  activations " in text


def external(name):
    folder = os.environ.get("PTERO_TEST_MODELS")
    return sorted(pathlib.Path(folder).resolve().glob(f"*/{name}")) if folder else []


if external("manifest.json"):  # otherwise conftest.py says so in one line, and nothing is counted

    @pytest.mark.parametrize("manifest", external("manifest.json"), ids=lambda path: path.parent.name)
    def test_external_models(ptero, manifest):
        _, results = verify(ptero, manifest)
        assert results
        assert not failures(results)

    @pytest.mark.parametrize("greedy", external("greedy.json"), ids=lambda path: path.parent.name)
    def test_external_text(ptero, greedy):
        status, results = verify(ptero, greedy)
        assert status == 0, results

    # A whole language model takes SwiftShader a minute; what follows is the host's doing.
    @pytest.mark.parametrize("ptero", ["lavapipe"], indirect=True)
    @pytest.mark.parametrize("greedy", external("greedy.json"), ids=lambda path: path.parent.name)
    def test_external_text_with_small_bindings(ptero, greedy):
        status, results = verify(ptero, greedy, "--max-binding", str(4 << 20))
        assert status == 0, results

    @pytest.mark.parametrize("ptero", ["lavapipe"], indirect=True)
    @pytest.mark.parametrize("greedy", external("greedy.json"), ids=lambda path: path.parent.name)
    def test_spoilt_external_text(ptero, greedy, tmp_path):
        """Another id where the first two logits are far apart, and another logit, are found."""
        whole = json.loads(greedy.read_text())
        whole["pte"] = str(greedy.parent / whole["pte"])
        spoilt = json.loads(json.dumps(whole))
        spoilt["greedy"][0]["greedy_ids"][0] += 1
        (tmp_path / "id.json").write_text(json.dumps(spoilt))
        status, results = verify(ptero, tmp_path / "id.json")
        assert status == 1
        assert "Id 0 is" in next(iter(results.values()))["error"]
        spoilt = json.loads(json.dumps(whole))
        spoilt["greedy"][0]["top5"][1][4][1] += 0.2
        (tmp_path / "logit.json").write_text(json.dumps(spoilt))
        status, results = verify(ptero, tmp_path / "logit.json")
        assert status == 1
        assert "at id 1" in next(iter(results.values()))["error"]
