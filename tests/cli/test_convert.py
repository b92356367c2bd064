# SPDX-License-Identifier: BSD-3-Clause
"""`ptero convert` as a person meets it."""

import json
import os
import resource
import signal
import subprocess
import time

import pytest
from conftest import PROGRAM
from gguf_file import write, write_model
from test_commands import sentence


def test_a_converted_model_runs(ptero, tmp_path):
    write_model(tmp_path / "x.gguf")
    done = ptero("convert", tmp_path / "x.gguf", "-o", tmp_path / "x.pte", "--context", 32,
                 "--max-seq", 9)
    assert done.returncode == 0, done.stderr
    assert "context 32, at most 9 tokens a run" in done.stdout
    assert "11 weights, 11 of them exact, 0 rounded" in done.stdout
    assert "tokenizer: yes, chat template: yes" in done.stdout
    (tmp_path / "tokens.bin").write_bytes(b"".join(i.to_bytes(8, "little") for i in (1, 2, 39)))
    (tmp_path / "position.bin").write_bytes(bytes(8))
    run = ptero("run", tmp_path / "x.pte", "--input", f"{tmp_path}/tokens.bin:i64:1x3",
                "--input", f"{tmp_path}/position.bin:i64:1")
    assert run.returncode == 0, run.stderr
    assert "output 0: float32 [1, 40]:" in run.stdout


@pytest.fixture(name="model")
def model_fixture(tmp_path):
    write_model(tmp_path / "x.gguf")
    return tmp_path / "x.gguf"


def test_the_program_says_what_was_asked_for(ptero_without_adapter, model, tmp_path):
    done = ptero_without_adapter("convert", model, "-o", tmp_path / "x.pte")
    assert done.returncode == 0, done.stderr
    report = json.loads(
        ptero_without_adapter("inspect", tmp_path / "x.pte", "--json").stdout)
    methods = {method["name"] for method in report["methods"]}
    assert {"forward", "get_max_seq_len", "get_eos_ids"} <= methods
    assert report["methods"][0]["inputs"][0]["shape"] == [1, 64]


def test_the_report_lists_weights(ptero_without_adapter, model, tmp_path):
    done = ptero_without_adapter("convert", model, "-o", tmp_path / "x.pte", "--report")
    line = next(line for line in done.stdout.splitlines() if "blk.0.attn_q.weight" in line)
    assert line.split() == ["blk.0.attn_q.weight", "Q4_0", "->", "4-bit", "640", "bytes", "exact"]


@pytest.mark.parametrize("weights", ["q4", "f16", "f32"])
def test_converting_twice_gives_the_same_bytes(ptero_without_adapter, model, tmp_path, weights):
    for name in "ab":
        done = ptero_without_adapter("convert", model, "-o", tmp_path / name, "--weights", weights)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("arguments, status, words", [
    ([], 2, "One of a GGUF file and --random"),
    (["{model}", "--random", "llama-1b"], 2, "One of a GGUF file and --random"),
    (["{model}", "--weights", "q5"], 2, "--weights (q5) is none of q4, f16 and f32."),
    (["{model}", "--head", "f16"], 2, "--head (f16) is neither q4 nor f32."),
    (["{model}", "--head", "f32", "--weights", "f16"], 2, "--head (f32) is for q4 weights"),
    (["{model}", "--context", "65"], 2, "(65) exceeds what the model was trained for (64)"),
    (["{model}", "--max-seq", "1"], 2, "(1) is below 2"),
    (["--random", "llama-7"], 2, "There is no random model \"llama-7\""),
    (["/nonexistent.gguf"], 5, "/nonexistent.gguf"),
    (["{broken}"], 3, "starts with \"NOPE\" where a GGUF file has \"GGUF\""),
    (["{cut}"], 3, "exceeds the"),
    (["{moe}"], 4, "mixes 4 experts (llama.expert_count)"),
    (["{other}"], 4, "The architecture \"mamba\" cannot be converted"),
])
def test_bad_input_gets_one_sentence_and_leaves_nothing(ptero_without_adapter, model, tmp_path,
                                                        arguments, status, words):
    (tmp_path / "broken").write_bytes(b"NOPE" + bytes(100))
    (tmp_path / "cut").write_bytes(model.read_bytes()[:-100])
    write_model(tmp_path / "moe", llama__expert_count=4)
    write(tmp_path / "other", {"general.architecture": "mamba"}, {})
    (tmp_path / "out").mkdir()
    output = tmp_path / "out" / "x.pte"
    output.write_text("before")
    named = {name: tmp_path / name for name in ("broken", "cut", "moe", "other")}
    words_of = [argument.format(model=model, **named) for argument in arguments]
    done = ptero_without_adapter("convert", *words_of, "-o", output)
    assert done.returncode == status, done.stderr
    assert words in sentence(done)
    assert [path.name for path in output.parent.iterdir()] == ["x.pte"]
    assert output.read_text() == "before"


def test_an_output_that_cannot_be_written(ptero_without_adapter, model, tmp_path):
    done = ptero_without_adapter("convert", model, "-o", tmp_path / "nowhere" / "x.pte")
    assert done.returncode == 5
    assert "nowhere" in sentence(done)


def test_a_full_disk_leaves_what_was_there(model, tmp_path):
    def fill_disk():  # a limit stands for the full disk: both make the write come back short
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "x.pte").write_text("before")
    # Python ignores the limit's signal, and so does what it starts unless signals are restored.
    done = subprocess.run([PROGRAM, "convert", model, "-o", folder / "x.pte"], capture_output=True,
                          text=True, check=False, preexec_fn=fill_disk, restore_signals=False)
    assert done.returncode == 5
    assert "cannot be written (File too large)" in sentence(done)
    assert [path.name for path in folder.iterdir()] == ["x.pte"]
    assert (folder / "x.pte").read_text() == "before"


def test_a_file_that_may_not_be_read(model, tmp_path):
    model.chmod(0)
    if os.access(model, os.R_OK):  # the user may read everything; nobody reads a folder
        model = tmp_path
    done = subprocess.run([PROGRAM, "convert", model, "-o", tmp_path / "x.pte"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert str(model) in sentence(done)
    assert not (tmp_path / "x.pte").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_conversion_leaves_no_half_file(tmp_path, number):
    output = tmp_path / "x.pte"
    output.write_text("before")
    with subprocess.Popen([PROGRAM, "convert", "--random", "llama-8b", "-o", output],
                          stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.iterdir())) < 2:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "The conversion is interrupted." in errors
    assert list(tmp_path.iterdir()) == [output]
    assert output.read_text() == "before"
