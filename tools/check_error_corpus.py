#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every error sentence in the readers of src/pte is produced by some case of the corruption tests.

Usage: check_error_corpus.py [--program PTE_TEST]

Takes the sentences from the sources: the text of each PTERO_REJECT_IF and make_error, and for the
helpers that put a field's name into a sentence (check_present and so on) one sentence for each
call. Runs the corruption cases, which write down the messages they met, and names every sentence
that none of them matches. Exit status 1 if there is one, 2 if the comparison cannot be made.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    path for path in (ROOT / "src/pte").iterdir()
    if re.search(r"(_reader|flatbuffer_input)\.(cc|h)$", path.name))

LITERALS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
CHECK = re.compile(
    r"\b(?:invalid_program|invalid_argument|unsupported|io|out_of_memory|internal)\s*,\s*" + LITERALS)

# Helper -> its sentence; {name} is the first of the literals that a call passes. Each must be in
# the sources.
HELPERS = {
    "check_present": "The field {name} is absent.",
    "read_name": "The name {name} is absent or empty.",
    "read_id": "The id {name} ({}) is not among the {} {}.",
    "read_ids": "The id ({}) at position {} of {name} is not among the {} {}.",
    "read_value_ids": "The id ({}) at position {} of {name} is not among the {} {}.",
    "verified_root": "The flatbuffer of the {name} ({} bytes) is damaged: it points outside of "
                      "itself, nests deeper than {} levels or holds more than {} tables.",
}
# A call with fewer literals is a helper that passes a name on.
LITERALS_OF = {"read_id": 2, "read_ids": 2}
CALL = re.compile(r"\b(%s)\s*(?:<[\w:]+>)?\(" % "|".join(HELPERS))
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


def joined(literals):
    text = "".join(LITERAL.findall(literals))
    return text.encode().decode("unicode_escape")


def arguments(text, start):
    """The text between the parenthesis before `start` and its partner."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at]
    return text[start:]


def wanted_sentences():
    """(where, sentence with {} placeholders) for everything that a case has to produce."""
    formats, calls = {}, []
    for path in SOURCES:
        text = path.read_text()
        for match in CHECK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            formats.setdefault(joined(match[1]), f"{path.name}:{line}")
        for match in CALL.finditer(text):
            literals = LITERAL.findall(arguments(text, match.end()))
            if len(literals) < LITERALS_OF.get(match[1], 1):
                continue
            line = text.count("\n", 0, match.start()) + 1
            sentence = HELPERS[match[1]].replace("{name}", literals[0])
            calls.append((f"{path.name}:{line}", sentence))
    for sentence in HELPERS.values():
        plain = sentence.replace("{name}", "{}")
        if plain not in formats:
            sys.exit(fail(f"No source has the helper sentence {plain!r} any more."))
    return [(where, text) for text, where in formats.items()] + calls


def fail(sentence):
    print(sentence, file=sys.stderr)
    return 2


def produced_messages(program):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "messages.txt"
        done = subprocess.run([program, "--test-case=corrupt*", "--no-version", "--no-intro"],
                              env={**os.environ, "PTERO_ERROR_CORPUS_OUT": str(out)},
                              capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            sys.exit(fail(f"The corruption tests fail:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"))
        return out.read_text().splitlines() if out.exists() else []


def pattern(sentence):
    return re.compile("".join(re.escape(part) if i % 2 == 0 else ".*" for i, part in
                              enumerate(re.split(r"(\{[^{}]*\})", sentence))) + r"\Z", re.S)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", help="the test program (default: the newest built one)")
    program = parser.parse_args().program
    if program is None:
        built = sorted(ROOT.glob("build/*/src/pte/pte_test"), key=lambda path: path.stat().st_mtime)
        if not built:
            return fail("No pte_test is built; ./dev test builds it.")
        program = built[-1]
    sentences = wanted_sentences()
    messages = produced_messages(str(program))
    missing = [(where, text) for where, text in sentences
               if not any(pattern(text).match(message) for message in messages)]
    for where, text in missing:
        print(f"src/pte/{where}: no corruption case produces {text!r}.")
    print(f"{len(sentences) - len(missing)} of {len(sentences)} sentences are produced by "
          f"{len(messages)} cases.")
    return 1 if missing or not messages else 0


if __name__ == "__main__":
    sys.exit(main())
