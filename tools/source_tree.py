# SPDX-License-Identifier: BSD-3-Clause
"""What the checks in tools/check_*.py share: finding files, reading C++, printing findings."""

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

SKIPPED_AT_ROOT = {"build", "shared"}
SKIPPED_ANYWHERE = {"node_modules", "__pycache__"}
COMMENT_OR_LITERAL = re.compile(
    r'R"(?P<mark>[^()\\\s]*)\([\s\S]*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*|/\*[\s\S]*?\*/")


class Finding(NamedTuple):
    file: str  # path below the root, with forward slashes
    line: int
    sentence: str


def files(root, suffixes=None, below=""):
    """Paths below the root as strings, sorted; without build output and hidden folders.

    `suffixes` chooses by the end of the name; None takes every file.
    """
    found = []
    for folder, folders, names in os.walk(Path(root) / below):
        at_root = Path(folder) == Path(root)
        folders[:] = [f for f in folders if f not in SKIPPED_ANYWHERE
                      and not (at_root and f in SKIPPED_AT_ROOT)
                      and (not f.startswith(".") or f == ".ci")]
        for name in names:
            if name != ".git" and (suffixes is None or name.endswith(tuple(suffixes))):
                found.append((Path(folder) / name).relative_to(root).as_posix())
    return sorted(found)


def read(root, path):
    """Text of a file; bytes that are not UTF-8 become replacement characters."""
    return (Path(root) / path).read_bytes().decode("utf-8", errors="replace")


def without_comments(text, keep_strings=False):
    """C++ with comments, and string and character literals unless kept, as blanks."""
    def blank(match):
        if keep_strings and not match[0].startswith("/"):
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])
    return COMMENT_OR_LITERAL.sub(blank, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def is_test(path):
    """Whether a C++ file is part of a test program or fuzzer and of nothing else."""
    return (path.startswith("tests/") or path.endswith(("_test.cc", "_fuzz.cc"))
            or (path.startswith("src/") and "/testing/" in path))


def main(check, default_root):
    """Prints the findings of check(root) and returns the exit status."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else default_root
    if not root.is_dir():
        print(f"Folder ({root}) does not exist.", file=sys.stderr)
        return 2
    findings = sorted(check(root))
    for file, line, sentence in findings:
        print(f"{file}:{line}: {sentence}")
    return 1 if findings else 0
