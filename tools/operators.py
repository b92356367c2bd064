#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/operators.md: every operator of a built program with what shows its numbers.

Usage: operators.py BUILD [--check], with a build folder of the preset ci. With --check it only
compares, and says what differs. An operator that nothing shows is an error.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "operators.md"

HEAD = """\
# Operators

What this version runs, made by `tools/operators.py` from the program's own list. Each row names a
model that PyTorch exported and whose outputs agree with PyTorch's on both test adapters, lavapipe
and SwiftShader; `ptero verify testdata/models/manifest.json --filter MODEL` repeats it. `live` counts
the models with that operator in which one loaded graph runs several lengths. Operators that the
exporter writes as others today have a test case instead: of `ops_gpu_test`, which runs on both
adapters, or of `ops_test` for those of the host. No file has an operator `ptero...`: the fusions of
`src/passes` make it of others as a model is loaded.
"""


def rows(names, models, key, tests):
    for name in names:
        found = [model for model in models if name in model[key]]
        # The model with the fewest other operators shows it best.
        found.sort(key=lambda model: (len(model[key]), sum(model[key].values()), model["name"]))
        live = sum(is_live(model) for model in found)
        if not found and name not in tests:
            sys.exit(f"Operator {name} has neither a test model nor a test case 'operator {name}'.")
        case = f"`{found[0]['name']}`" if found else f"test `{tests[name]}`"
        yield f"| `{name}` | {case} | {len(found)} | {live} |"


def is_live(model):
    return any(len({json.dumps([tensor["shape"] for tensor in step["inputs"]])
                    for step in sequence["steps"]}) > 1
               for sequence in model["sequences"])


def test_cases(build):
    """Test programs by the operators that they have a case for: "operator NAME, NAME"."""
    cases = {}
    for program in ("ops_gpu_test", "ops_test"):
        listed = subprocess.run([build / "src" / "ops" / program, "--list-test-cases"], check=True,
                                capture_output=True, text=True).stdout
        for line in re.findall(r"^operator (.*)$", listed, re.MULTILINE):
            cases |= dict.fromkeys(re.split(r",\s*", line), program)
    return cases


def page(operators, models, tests):
    lines = [HEAD]
    for title, names, key in (
        ("Inside delegates, on the GPU", operators["graph"], "operators"),
        ("Between delegates, on the host", operators["host"], "host_operators"),
    ):
        lines += [f"## {title}", "", "| operator | a model | models | live |", "|---|---|---|---|"]
        lines += [*rows(names, models, key, tests), ""]
    return "\n".join(lines)


def current(build):
    operators = json.loads(subprocess.run([build / "ptero", "operators", "--json"], check=True,
                                          capture_output=True, text=True).stdout)
    manifest = json.loads((ROOT / "testdata" / "models" / "manifest.json").read_text())
    return page(operators, manifest["models"], test_cases(build))


def main():
    text = current(pathlib.Path(sys.argv[1]))
    if "--check" not in sys.argv[2:]:
        PAGE.write_text(text)
        return 0
    if PAGE.read_text() == text:
        return 0
    print(f"docs/operators.md is not what {sys.argv[1]} runs; tools/operators.py writes it anew.",
          file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
