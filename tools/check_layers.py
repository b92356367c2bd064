#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Guards the layers of src/ and what each of them may touch; docs/architecture.md says why.

Usage: check_layers.py [ROOT]. One sentence a finding; exit status 1 if there is any.
"""

import re
import sys
from pathlib import Path

from source_tree import Finding, files, is_test, line_of, main, read, without_comments

# A layer includes itself and any layer of a lower level, never a neighbour of its own level.
LEVELS = {
    "base": 0,
    "gpu": 1, "pte": 1, "gguf": 1, "text": 1,
    "graph": 2,
    "ops": 3, "passes": 3,
    "llm": 4, "convert": 4,
}
# Headers generated from schema/*.fbs; the readers and writers of files are the only users.
SCHEMA_USERS = {"pte"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)
PLATFORM = re.compile(
    r"\b(__EMSCRIPTEN__|_WIN32|_WIN64|__APPLE__|__linux__|__unix__|__ANDROID__)\b")
# Libraries return errors and log through base/log.h.
BANNED = (
    (re.compile(r"\b(throw|try|catch)\b"), "an error is a Result, not an exception"),
    (re.compile(r"(?<![.>\w])(abort|exit|_Exit|quick_exit|terminate)\s*\("),
     "a library does not end the program"),
    (re.compile(r"\bstd::(cout|cerr|clog)\b"), "a library does not print"),
    (re.compile(r"\b(stdout|stderr)\b"), "a library does not print"),
    (re.compile(r"(?<![.>\w])(v?f?printf|f?puts|putchar|perror)\s*\("), "a library does not print"),
    (re.compile(r"\b(fmt::print(?:ln)?|std::print(?:ln)?)\b"), "a library does not print"),
)
BLOCKING_WAIT = re.compile(r"\b(?:wgpu(?:Instance)?)?WaitAny\b")


def check_include(path, quote, target):
    """The sentence against one include of one file, or None."""
    parts, first = Path(path).parts, target.split("/")[0]
    layer = parts[1] if parts[0] == "src" else None
    if first in ("webgpu", "dawn") or target in ("webgpu.h", "webgpu_cpp.h"):
        if layer != "gpu":
            return f"Include ({target}) is of WebGPU; only src/gpu uses it."
        private = parts[2] == "internal" or path.endswith(".cc")
        return None if private else (
            f"Include ({target}) stands in a header that other layers include; it belongs in a .cc "
            "or in src/gpu/internal.")
    if quote == "<":
        return None
    if target.startswith("gpu/internal/"):
        if layer != "gpu":
            return f"Include ({target}) is private to src/gpu."
        if path.endswith(".h") and parts[2] != "internal":
            return f"Include ({target}) stands in a header that other layers include."
    if layer is None:
        return None
    if target.startswith("gpu/native/") and not is_test(path) and parts[2] != "native":
        return f"Include ({target}) brings the blocking wait into the core, which links without it."
    if first == "schema":
        return None if layer in SCHEMA_USERS else (
            f"Include ({target}) is of a generated schema; only {', '.join(sorted(SCHEMA_USERS))} "
            "uses it.")
    if first not in LEVELS or "/" not in target:
        return f"Include ({target}) does not start with a layer's folder below src."
    if first != layer and layer in LEVELS and LEVELS[first] >= LEVELS[layer]:
        return f"Include ({target}) of layer {first} is not below layer {layer}."
    return None


def check_code(path, code):
    """Findings in the code of one file of src/ (comments and literals are blanks)."""
    if not Path(path).name.startswith("platform_") and not is_test(path):
        for match in PLATFORM.finditer(code):
            yield match.start(), (f"Platform macro ({match[1]}) stands outside a file named "
                                  "platform_*.")
    if not path.startswith("src/gpu/native/"):
        for match in BLOCKING_WAIT.finditer(code):
            yield match.start(), f"Blocking wait ({match[0]}) stands outside src/gpu/native."
    if is_test(path):
        return
    for pattern, reason in BANNED:
        for match in pattern.finditer(code):
            yield match.start(), f"Use of {match[1]} stands in a library; {reason}."


def check(root):
    for path in files(root, below="src"):
        parts = Path(path).parts
        if len(parts) == 2 and parts[1] != "CMakeLists.txt":
            yield Finding(path, 1, "File of src is in no layer's folder.")
        elif len(parts) > 2 and parts[1] not in LEVELS:
            layers = ", ".join(LEVELS)
            yield Finding(path, 1, f"Folder (src/{parts[1]}) is not a layer ({layers}).")
    for folder in ("src", "apps", "bench", "tests"):
        for path in files(root, (".cc", ".h"), folder):
            text = read(root, path)
            for match in INCLUDE.finditer(without_comments(text, keep_strings=True)):
                if sentence := check_include(path, match[1], match[2]):
                    yield Finding(path, line_of(text, match.start(1)), sentence)
            if folder == "src":
                for position, sentence in check_code(path, without_comments(text)):
                    yield Finding(path, line_of(text, position), sentence)


if __name__ == "__main__":
    sys.exit(main(check, Path(__file__).resolve().parents[1]))
