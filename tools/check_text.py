#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Text rules that no formatter keeps: licence lines, white space, places, skipped and lost tests.

Usage: check_text.py [ROOT]. One sentence a finding; exit status 1 if there is any.
"""

import re
import sys
from pathlib import Path

from source_tree import Finding, files, line_of, main, read

SPDX = "SPDX-License-Identifier: BSD-3-Clause"
SOURCES = (".cc", ".h", ".py", ".sh", ".cmake", ".wgsl", ".js", ".mjs", "CMakeLists.txt")
TEXTS = (*SOURCES, ".md", ".txt", ".json", ".toml", ".yml", ".yaml", ".html", ".css", ".fbs")

# Put together here, so that this file names none itself.
HOSTS = [".".join(parts) for parts in (
    ("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"),
    ("debian", "org"), ("ubuntu", "com"), ("crates", "io"), ("anaconda", "org"),
    ("docker", "io"), ("ghcr", "io"), ("proxy", "golang", "org"))]
HOST = re.compile(r"(?<![\w-])(?:[\w-]+\.)*(?:" + "|".join(map(re.escape, HOSTS)) + r")(?![\w-])")
MACHINE_PATH = re.compile(r"(?<![\w.}>~/-])/(?:work|root|home|Users)/[\w.-]*")
SKIP = re.compile(
    r"\bGTEST_SKIP\b|\bSKIP_RETURN_CODE\b|\bdoctest::(?:skip|may_fail|should_fail)\b"
    r"|\*\s*(?:skip|may_fail|should_fail)\(|\bpytest\.(?:skip|importorskip|xfail)\b"
    r"|\bmark\.(?:skip|skipif|xfail)\b|\bunittest\.(?:skip\w*|expectedFailure|SkipTest)\b"
    r"|\bskipTest\(|\btest\.(?:skip|todo)\b")
SUBDIRECTORY = re.compile(r"^[ \t]*add_subdirectory\(\s*([^\s)]+)", re.M)
LAYER = re.compile(r"^[ \t]*ptero_layer\((?P<arguments>[^)]*)\)", re.M)
EXCLUDE = re.compile(r'EXCLUDE\s+"([^"]*)"')


def is_shell(path, text):
    return "." not in Path(path).name and text.startswith("#!")


def is_data(path):
    """Kept byte for byte: goldens, inputs that once failed, licences of others."""
    return bool({"testdata", "third_party", "schema"} & set(Path(path).parts)) or "_corpus/" in path


def check_licence(path, text):
    if path.endswith(SOURCES) or path == "dev" or is_shell(path, text):
        lines = text.split("\n")
        place = 1 if lines[0].startswith(("#!", "# shellcheck ")) else 0
        if len(lines) <= place or SPDX not in lines[place]:
            yield Finding(path, place + 1, f"Line is not the licence ({SPDX}).")


def check_white_space(path, text):
    if not path.endswith(TEXTS) and not is_shell(path, text):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line:
            yield Finding(path, number, "Line has a tab.")
        if line != line.rstrip():
            yield Finding(path, number, "Line ends in white space.")
    if text and not text.endswith("\n"):
        yield Finding(path, text.count("\n") + 1, "File does not end with a newline.")
    if text.endswith("\n\n"):
        yield Finding(path, text.count("\n"), "File ends with an empty line.")


def check_places(path, text):
    for match in HOST.finditer(text):
        yield Finding(path, line_of(text, match.start()),
                      f"Host of a package registry ({match[0]}) is named.")
    for match in MACHINE_PATH.finditer(text):
        yield Finding(path, line_of(text, match.start()),
                      f"Path of one machine ({match[0]}) is named.")


def check_skips(path, text):
    name = Path(path).name
    if path.endswith(("_test.cc", ".test.mjs")) or path.startswith("tests/") or (
            name.startswith("test_") and name.endswith(".py")):
        for match in SKIP.finditer(text):
            yield Finding(path, line_of(text, match.start()),
                          f"Skip ({match[0].strip('(')}) reads as passed; a test runs or fails.")


def reached_lists(root):
    """Folders whose CMakeLists.txt the top one reaches, with their text."""
    reached, queue = {}, [""]
    while queue:
        folder = queue.pop()
        file = Path(root) / folder / "CMakeLists.txt"
        if folder in reached or not file.is_file():
            continue
        reached[folder] = text = re.sub(r"#[^\n]*", "", read(root, file.relative_to(root)))
        queue += [f"{folder}/{name}".strip("/") for name in SUBDIRECTORY.findall(text)]
    return reached


def is_built(path, lists):
    """Whether a CMakeLists.txt above a test makes a program of it."""
    for folder in Path(path).parents:
        text = lists.get("" if folder.as_posix() == "." else folder.as_posix())
        if text is None:
            continue
        for layer in LAYER.finditer(text):
            exclude = EXCLUDE.search(layer["arguments"])
            if not exclude or not re.search(exclude[1], "/" + path):
                return True
        below = re.escape(Path(path).relative_to(folder).as_posix())
        if re.search(rf'(?<![\w/.-]){below}(?![\w.-])|\*_test\.cc', text):
            return True
    return False


def check(root):
    lists = reached_lists(root)
    for path in files(root):
        text = read(root, path)
        if "\0" in text:
            continue
        if not is_data(path):
            yield from check_licence(path, text)
            yield from check_white_space(path, text)
        yield from check_places(path, text)
        yield from check_skips(path, text)
        if path.endswith("_test.cc") and not is_built(path, lists):
            yield Finding(path, 1, "Test is in no folder that ptero_layer() or tests/ builds.")


if __name__ == "__main__":
    sys.exit(main(check, Path(__file__).resolve().parents[1]))
