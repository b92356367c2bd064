# SPDX-License-Identifier: BSD-3-Clause
"""SmolLM2's stored answers, and the C example beside the command line: the same words from both."""

import json
import subprocess

import pytest
from conftest import ROOT
from test_language_models import model_fixture  # noqa: F401  (a fixture)
from test_models import external

EXAMPLE = ROOT / "build" / "ci" / "c_answer"
# What SmolLM2 was trained with: who it is, then the turns.
SMOLLM2_TEMPLATE = (
    "{% for message in messages %}{% if loop.first and message.role != 'system' %}"
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n{% endif %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def example(ptero, *arguments, **options):
    return subprocess.run([EXAMPLE, *map(str, arguments)], env=ptero.environment,
                          capture_output=True, text=True, timeout=300, check=False, **options)


def test_the_example_in_c_says_what_the_program_says(ptero, model):
    run = example(ptero, model, "ab", "temp=2", "seed=1", "n-predict=12",
                  "ignore-eos=true")
    assert run.returncode == 0, run.stderr
    assert "loading: 100 %" in run.stderr
    assert "of answer in" in run.stderr
    told = ptero("generate", model, "-p", "ab", "--temp", 2, "--seed", 1, "-n", 12,
                 "--ignore-eos")
    assert run.stdout.rstrip("\n") == told.stdout.rstrip("\n") != ""


@pytest.mark.parametrize("arguments, status, words", [
    (["missing.pte", "x"], 5, "missing.pte"),
    (["{model}", "x", "temp=-1"], 2, "temperature"),
    (["{model}", "x", "colour=red"], 2, "There is no option (colour)"),
    (["{model}", "x", "adapter=nobody"], 2, "(nobody)"),
    (["{model}", "x", "max-buffer=1000"], 6, "holds at most 1000"),
    (["{model}"], 2, "usage"),
])
def test_the_example_in_c_reports_errors(ptero, model, arguments, status, words):
    run = example(ptero, *[argument.format(model=model) for argument in arguments])
    assert run.returncode == status
    assert words in run.stderr
    assert run.stdout == ""


def certain(text):
    """Ids until the first two logits come so near that rounding may choose."""
    margins = [first[1] - second[1] for first, second, *_ in text["top5"]]
    unsure = (i for i, margin in enumerate(margins) if margin < 0.05)
    return text["greedy_ids"][:next(unsure, len(margins))]


if external("greedy.json"):  # otherwise conftest.py says so in one line, and nothing is counted

    # A whole language model takes SwiftShader minutes; test_models.py runs its logits there.
    @pytest.mark.parametrize("ptero", ["lavapipe"], indirect=True)
    @pytest.mark.parametrize("greedy", external("greedy.json"), ids=lambda path: path.parent.name)
    def test_stored_prompts_are_answered_as_stored(ptero, greedy, tmp_path):
        stored = json.loads(greedy.read_text())
        model, tokenizer = (greedy.parent / stored[key] for key in ("pte", "tokenizer"))
        template = tmp_path / "template.jinja"
        template.write_text(SMOLLM2_TEMPLATE)
        assert stored["greedy"]
        for text in stored["greedy"]:
            ids = certain(text)
            assert len(ids) > 8
            ends = ids == text["greedy_ids"] and ids[-1] in stored["stop_ids"]
            count = len(ids)
            message = text["prompt"].split("<|im_start|>user\n")[1].split("<|im_end|>")[0]
            flags = ["--tokenizer", tokenizer, "--temp", 0, "-n", count]
            told = ptero("generate", model, "--raw", "-p", text["prompt"], "--print-ids", *flags)
            assert told.returncode == 0, told.stderr
            assert [int(line) for line in told.stdout.split()] == (ids[:-1] if ends else ids)
            assert f"prompt: {len(text['prompt_ids'])} tokens" in told.stderr

            words = ptero("generate", model, "-p", message, "--chat-template-file", template, *flags)
            answer = example(ptero, model, message, f"tokenizer={tokenizer}",
                             f"chat-template-file={template}", "temp=0", f"n-predict={count}")
            assert words.returncode == answer.returncode == 0, words.stderr + answer.stderr
            assert answer.stdout.rstrip("\n") == words.stdout.rstrip("\n") != ""
            assert f"{len(text['prompt_ids'])} tokens of prompt" in answer.stderr
            raw = ptero("generate", model, "--raw", "-p", text["prompt"], *flags)
            assert raw.stdout == words.stdout
