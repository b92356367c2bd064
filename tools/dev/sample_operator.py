#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the files that a document lists into a folder.

A listing whose fence names a file (three backticks, the language, the path) is that file.
"""

import pathlib
import re
import sys

FENCE = re.compile(r"^```\w+ (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main() -> int:
    document, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    listings = FENCE.findall(document.read_text(encoding="utf-8"))
    if not listings:
        print(f"{document} lists no file.", file=sys.stderr)
        return 1
    for path, text in listings:
        file = target / path
        if file.exists():
            print(f"{document} lists {path}, which exists already.", file=sys.stderr)
            return 1
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
