# SPDX-License-Identifier: BSD-3-Clause
"""`ptero generate`, `chat` and `bench` as a person meets them, with a tiny converted model."""

import csv
import io
import json
import signal
import struct
import subprocess
import time

import pytest
from conftest import PROGRAM
from gguf_file import write_model
from test_commands import sentence


@pytest.fixture(name="model", scope="module")
def model_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write_model(folder / "x.gguf")
    done = subprocess.run([PROGRAM, "convert", folder / "x.gguf", "-o", folder / "x.pte",
                           "--context", "64", "--max-seq", "9"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "x.pte"


def ids(result):
    assert result.returncode == 0, result.stderr
    return [int(line) for line in result.stdout.split()]


def test_generate_writes_the_answer_alone_to_stdout(ptero, model):
    run = ptero("generate", model, "--ids", "1,2,39", "--temp", 0, "-n", 8, "--ignore-eos",
                "--print-ids")
    assert len(ids(run)) == 8
    assert "prompt: 3 tokens" in run.stderr
    assert "answer: 8 tokens" in run.stderr
    again = ptero("generate", model, "--ids", "1,2,39", "--temp", 0, "-n", 8, "--ignore-eos",
                  "--print-ids")
    assert ids(again) == ids(run)


def test_a_seed_repeats_an_answer(ptero, model):
    def answer(seed):
        return ids(ptero("generate", model, "--ids", "1,2,39", "--temp", 2, "--top-k", 0, "--top-p",
                         1, "--min-p", 0, "-n", 20, "--seed", seed, "--ignore-eos", "--print-ids"))
    assert answer(1) == answer(1)
    assert len({tuple(answer(seed)) for seed in (1, 2, 3)}) > 1


def test_text_goes_in_and_comes_out(ptero, model, tmp_path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("ab")
    raw = ptero("generate", model, "-f", prompt, "--raw", "--temp", 0, "-n", 4, "--ignore-eos")
    assert raw.returncode == 0, raw.stderr
    assert raw.stdout.endswith("\n")
    whole = ptero("generate", model, "-p", "ab", "--temp", 0, "-n", 4, "--ignore-eos")
    assert whole.returncode == 0, whole.stderr
    # The template puts words around the prompt.
    count = [int(run.stderr.split("prompt: ")[1].split()[0]) for run in (raw, whole)]
    assert count[0] < count[1]


@pytest.mark.parametrize("arguments, words", [
    (["-p", ""], "There is no prompt"),
    (["--ids", "1,x"], "Token id (x) is not a number."),
    (["--ids", "99"], "Token 99 lies outside the model's vocabulary of 40"),
    (["--ids", ",".join(["1"] * 64)], "leave no room in the model's context of 64"),
    (["-p", "a", "--temp", "-1"], "temperature"),
    (["-p", "a", "--top-p", "7"], "Value (7) of top-p"),
    (["-p", "a", "-n", "0"], "-n (0)"),
    (["-p", "a", "--logit-bias", "7"], "Logit bias (7)"),
    (["-f", "/nonexistent"], "/nonexistent"),
    (["-p", "a", "--tokenizer", "/nonexistent"], "/nonexistent"),
    (["-p", "a", "--tokenizer", "{garbage}"], "{garbage}"),
    (["-p", "a", "--chat-template-file", "{template}"], "template"),
])
def test_bad_input_gets_one_sentence(ptero, model, tmp_path, arguments, words):
    (tmp_path / "garbage").write_text("no tokenizer")
    (tmp_path / "template").write_text("{% for x %}")
    places = {"garbage": tmp_path / "garbage", "template": tmp_path / "template"}
    run = ptero("generate", model, *[argument.format(**places) for argument in arguments])
    assert run.returncode not in (0, 1) and run.stdout == ""
    if "{" not in words:
        assert words in run.stderr
    sentence(run)


def test_a_model_that_is_none(ptero, tmp_path):
    from test_models import MANIFEST, MODELS
    run = ptero("generate", MANIFEST.parent / MODELS["add_alpha"]["pte"], "-p", "a")
    assert run.returncode == 4
    assert "as a language model with a KV cache does" in run.stderr
    (tmp_path / "cut.pte").write_bytes((MANIFEST.parent / MODELS["add_alpha"]["pte"]).read_bytes()[:99])
    assert ptero("chat", tmp_path / "cut.pte").returncode == 3
    assert ptero("bench", tmp_path / "missing.pte").returncode == 5


def test_chat_remembers_and_takes_commands(ptero, model, tmp_path):
    saved = tmp_path / "chat.json"
    lines = f"a\n/help\nb \\\nc\n/save {saved}\n/nope\n/regenerate\n/system be brief\nd\n/quit\n"
    run = subprocess.run([PROGRAM, "chat", model, "--temp", "0", "-n", "3", "--ignore-eos"],
                         input=lines, env=ptero.environment, capture_output=True, text=True,
                         timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    messages = json.loads(saved.read_text())
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    assert messages[2]["content"] == "b \nc"
    assert "more were known" in run.stderr
    assert "There is no command /nope" in run.stderr
    assert run.stderr.count("answer: 3 tokens") == 4


def test_ctrl_c_ends_an_answer(ptero, model):
    process = subprocess.Popen([PROGRAM, "generate", model, "--ids", "1,2", "--ignore-eos",
                                "--print-ids", "--temp", "0"], env=ptero.environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    # It may have come to the end of its context just before.
    assert "interrupted" in stderr or "context is full" in stderr
    assert (process.returncode != 0) == ("interrupted" in stderr)


def test_a_closed_pipe_ends_it(ptero, model):
    process = subprocess.Popen([PROGRAM, "generate", model, "--ids", "1,2", "--ignore-eos",
                                "--print-ids", "--temp", "0"], env=ptero.environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.stdout.close()
    start = time.monotonic()
    process.stderr.read()
    process.wait(timeout=60)
    assert time.monotonic() - start < 60
    assert process.returncode == 0


def test_a_closed_pipe_ends_a_chat(ptero, model):
    process = subprocess.Popen([PROGRAM, "chat", model, "--ignore-eos", "--temp", "0"],
                               env=ptero.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    process.stdin.write("a\n")
    process.stdin.flush()
    process.stdout.read(1)
    process.stdout.close()
    _, stderr = process.communicate("b\n" * 5, timeout=60)
    assert process.returncode == 0
    assert stderr.count("answer: ") <= 2


@pytest.mark.parametrize("arguments", [
    ["generate", "{model}", "--ids", "1,2", "--ignore-eos", "--print-ids"],
    ["bench", "{model}", "-p", "8", "-n", "2", "-r", "1"],
    ["operators"],
], ids=lambda arguments: arguments[0])
def test_a_full_disk_is_told(ptero, model, arguments):
    with open("/dev/full", "w", encoding="utf-8") as full:
        run = subprocess.run([PROGRAM, *[argument.format(model=model) for argument in arguments]],
                             env=ptero.environment, stdout=full, stderr=subprocess.PIPE, text=True,
                             timeout=120, check=False)
    assert run.returncode == 5
    assert "ptero: The output cannot be written" in run.stderr


def test_a_tokenizer_of_another_model(ptero, model, tmp_path):
    assert ptero("inspect", model, "--extract", tmp_path).returncode == 0
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["a"] = 40  # the model has 0 to 39
    (tmp_path / "other.json").write_text(json.dumps(tokenizer))
    run = ptero("generate", model, "--raw", "-p", "xax", "--tokenizer", tmp_path / "other.json")
    assert run.returncode == 2 and run.stdout == ""
    assert "Token 40 lies outside the model's vocabulary of 40; is the tokenizer that of another" \
        in sentence(run)
    # Where the prompt stays inside, an id without a token is no text.
    tokenizer["model"]["vocab"] = dict(list(tokenizer["model"]["vocab"].items())[:10])
    tokenizer["model"]["merges"] = []
    (tmp_path / "smaller.json").write_text(json.dumps(tokenizer))
    run = ptero("generate", model, "--raw", "-p", "b", "--tokenizer", tmp_path / "smaller.json",
                "-n", 3, "--ignore-eos")
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("command", [
    ["generate", "{model}", "--ids", "1"],
    ["chat", "{model}"],
    ["bench", "{model}"],
], ids=lambda command: command[0])
def test_a_model_that_does_not_fit_is_told_before_loading(ptero, model, command):
    run = ptero(*[word.format(model=model) for word in command], "--max-buffer", 1000)
    assert run.returncode == 6 and run.stdout == ""
    words = sentence(run)
    assert "does not fit adapter" in words and "takes 8192 bytes" in words
    assert "holds at most 1000 " in words and "a shorter context" in words


def test_bench_prints_rows_that_programs_read(ptero, model):
    status, report = ptero.json_of("bench", model, "-p", "8,16", "-n", "4", "-r", "2", "-o", "json")
    assert status == 0
    assert [row["test"] for row in report["rows"]] == ["pp8", "pp16", "tg4"]
    for row in report["rows"]:
        assert not row["failed"]
        assert row["tokens_per_second"] > 0
        assert row["dispatches_per_token"] > 0
        assert row["bytes_read_back_per_token"] <= 4096
        assert row["operator_calls_per_token"] == 0
    table = ptero("bench", model, "-p", "8", "-n", "4", "-r", "1", "--profile")
    assert "| pp8 |" in table.stdout and "| tg4 |" in table.stdout
    assert "Kernels of tg8 by GPU time" in table.stdout
    for row in report["rows"]:
        assert row["gpu_seconds_per_token"] > 0
        assert row["first_token_seconds"] > 0
        assert row["wall_seconds_per_token"] == pytest.approx(1 / row["tokens_per_second"])
    assert report["load_seconds"] > 0
    assert report["device_bytes_peak"] > 0 and report["host_bytes_peak"] > 0
    _, without = ptero.json_of("bench", model, "-p", "8", "-n", "0", "-r", "1", "-o", "json",
                               "--disable", "timestamps")
    assert without["rows"][0]["gpu_seconds_per_token"] is None
    rows = list(csv.DictReader(io.StringIO(
        ptero("bench", model, "-p", "8", "-n", "2", "-r", "1", "-o", "csv").stdout)))
    assert [row["test"] for row in rows] == ["pp8", "tg2"]
    assert rows[0]["model"] == str(model) and rows[1]["error"] == ""
    assert float(rows[1]["gpu_seconds_per_token"]) > 0
    refused = ptero("bench", model, "--profile", "-o", "csv")
    assert refused.returncode == 2 and refused.stdout == ""
    too_long = ptero("bench", model, "-p", "99", "-n", "0", "-r", "1")
    assert too_long.returncode == 1
    assert "failed: The prompt's 99 tokens leave no room" in too_long.stdout


def test_bench_traces_rows_steps_and_kernels(ptero, model, tmp_path):
    trace = tmp_path / "trace.json"
    flags = ("-p", "8", "-n", "4", "-r", "2", "-o", "json")
    assert ptero("bench", model, *flags, "--trace", trace).returncode == 0
    events = json.loads(trace.read_text())["traceEvents"]
    names = {(event["pid"], event["tid"]): event["args"]["name"] for event in events
             if event["ph"] == "M" and event["name"] == "thread_name"}

    def track(name):
        return [event for event in events if event["ph"] == "X"
                and names[event["pid"], event["tid"]] == name]
    rows = track("load and rows")
    assert [event["name"] for event in rows] == [
        "load", "pp8", "pp8", "pp8 with time stamps", "tg4", "tg4", "tg4 with time stamps"]
    assert [event["name"] for event in track("prompt and tokens")].count("token 5") == 3
    assert len(track("compute passes")) > 10 and not track("kernels (profiled)")
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert any(row["ts"] <= event["ts"] <= row["ts"] + row["dur"] for row in rows)

    status, report = ptero.json_of("bench", model, *flags, "--profile", "--trace", trace)
    assert status == 0
    events = json.loads(trace.read_text())["traceEvents"]
    kernels = {event["name"] for event in track("kernels (profiled)")}
    assert {"rms_norm", "q4_embedding"} <= kernels
    for profile in report["profiles"]:
        assert {kernel["kernel"] for kernel in profile["kernels"]} <= kernels
        assert sum(kernel["share"] for kernel in profile["kernels"]) == pytest.approx(1)

    lost = ptero("bench", model, *flags, "--trace", tmp_path / "no folder" / "trace.json")
    assert lost.returncode == 5 and "no folder" in lost.stderr
    assert json.loads(lost.stdout)["rows"]  # what was measured is not lost


def test_bench_fails_a_row_without_timing_it(ptero, model, tmp_path):
    """Logits that are NaN, and errors of the GPU."""
    ones = struct.pack("<32f", *[1.0] * 32)
    whole = model.read_bytes()
    assert whole.count(ones) == 3  # the norms
    wrong = tmp_path / "nan.pte"
    wrong.write_bytes(whole.replace(ones, struct.pack("<32f", *[float("nan")] * 32)))
    flags = ("-p", "8", "-n", "2", "-r", "1", "-o", "json")
    status, report = ptero.json_of("bench", wrong, *flags)
    assert status == 1
    for row in report["rows"]:
        assert row["failed"] and "NaN" in row["error"] and "tokens_per_second" not in row

    status, report = ptero.json_of("bench", model, *flags, "--inject-fault", "submit:2:fail")
    assert status == 1
    assert [row["failed"] for row in report["rows"]] == [True, False]
    assert "injected fault" in report["rows"][0]["error"]
    status, report = ptero.json_of("bench", model, *flags, "--inject-fault", "map:2:lose")
    assert status == 1
    assert all(row["failed"] and "device is lost" in row["error"] for row in report["rows"])
    assert ptero("bench", wrong, *flags[:-1], "md").stdout.count("| failed: ") == 2
    refused = ptero("bench", model, "--inject-fault", "submit:x:fail")
    assert refused.returncode == 2


def test_pack_and_extract(ptero, model, tmp_path):
    bare = tmp_path / "bare.pte"
    bare.write_bytes(model.read_bytes())
    out = tmp_path / "out"
    taken = ptero("inspect", bare, "--extract", out)
    assert taken.returncode == 0, taken.stderr
    tokenizer = out / "tokenizer.json"
    template = out / "chat_template.jinja"
    assert json.loads(tokenizer.read_text())["model"]["type"] == "BPE"
    template.write_text("{{ messages[0].content }}")
    packed = ptero("pack", bare, "-o", tmp_path / "packed.pte", "--tokenizer", tokenizer,
                   "--template", template)
    assert packed.returncode == 0, packed.stderr
    again = tmp_path / "again"
    assert ptero("inspect", tmp_path / "packed.pte", "--extract", again).returncode == 0
    assert (again / "tokenizer.json").read_bytes() == tokenizer.read_bytes()
    assert (again / "chat_template.jinja").read_text() == "{{ messages[0].content }}"
    flags = ("-p", "ab", "--temp", 0, "-n", 4, "--ignore-eos")
    assert (ptero("generate", tmp_path / "packed.pte", *flags).stdout
            == ptero("generate", bare, "--raw", *flags).stdout)
    before = bare.read_bytes()
    template.write_text("{% for %}")
    for arguments in (["--template", template], ["--tokenizer", template], [],
                      ["--tokenizer", tmp_path / "missing"]):
        wrong = ptero("pack", bare, *arguments)
        assert wrong.returncode not in (0, 1)
        sentence(wrong)
    assert bare.read_bytes() == before
