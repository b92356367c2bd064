#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Keeps files small: 400 lines of code, 200 of WGSL, or a reason near the top of the file.

Usage: check_sizes.py [ROOT]. One sentence a finding; exit status 1 if there is any.
A longer file says `// size: <reason>` (or `# size: <reason>`) within its first 15 lines.
"""

import re
import sys
from pathlib import Path

from source_tree import Finding, files, main, read

LIMITS = {".cc": 400, ".h": 400, ".py": 400, ".sh": 400, ".js": 400, ".mjs": 400, ".wgsl": 200}
REASON = re.compile(r"^\s*(?://|#)\s*size:[ \t]*(.*)$")
REASON_LINES = 15
SHORTEST_REASON = 10  # characters: "because" is none


def check(root):
    for path in files(root):
        text = read(root, path) if Path(path).suffix in ("", *LIMITS) else ""
        suffix = Path(path).suffix or (".sh" if re.match(r"#!.*\bsh\b|#!.*bash", text) else "")
        if suffix not in LIMITS:
            continue
        lines = text.splitlines()
        reasons = [(n, m[1].strip()) for n, line in enumerate(lines[:REASON_LINES], 1)
                   if (m := REASON.match(line))]
        for number, reason in reasons:
            if len(reason) < SHORTEST_REASON:
                yield Finding(path, number, f"Reason for the size ({reason}) says too little.")
        if len(lines) > LIMITS[suffix] and not reasons:
            yield Finding(path, len(lines), f"Length ({len(lines)} lines) exceeds the limit "
                          f"({LIMITS[suffix]}) without a `size:` reason in the first "
                          f"{REASON_LINES} lines.")


if __name__ == "__main__":
    sys.exit(main(check, Path(__file__).resolve().parents[1]))
