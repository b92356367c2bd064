# SPDX-License-Identifier: BSD-3-Clause
"""Command line; run from the repository root as `python -m tools.export`."""

from __future__ import annotations

import argparse
import fnmatch
import os
import pathlib
import sys
import tempfile
import time
import warnings

SMALL = pathlib.Path("testdata/models")
BIG = pathlib.Path("build/models")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.export", description=__doc__)
    parser.add_argument("--set", choices=("small", "big"), default="small", dest="which")
    parser.add_argument("--out", type=pathlib.Path, help=f"default {SMALL} or {BIG}")
    parser.add_argument("--only", nargs="+", metavar="GLOB", help="only these cases or families")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="compare with --out, write nothing")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    options = parser.parse_args()
    out = options.out or (BIG if options.which == "big" else SMALL)

    os.environ["PYTHONWARNINGS"] = "ignore"  # for the workers; the exporter warns of itself
    warnings.filterwarnings("ignore")
    from tools.export import build, check, registry  # the import of torch takes seconds

    whole_set = registry.select(big=options.which == "big")
    selected = [
        (family, case)
        for family, case in whole_set
        if not options.only
        or any(fnmatch.fnmatch(n, g) for n in (family, case.name) for g in options.only)
    ]
    if not selected:
        parser.error("no case matches --only")
    if options.list:
        print("\n".join(f"{family}/{case.name}" for family, case in selected))
        return 0

    begin = time.monotonic()
    say = lambda line: print(line, flush=True)  # noqa: E731
    if options.check:
        with tempfile.TemporaryDirectory() as fresh:
            problems = check.compare(selected, pathlib.Path(fresh), out, options.jobs, say)
    else:
        entries, problems = build.build(selected, out, options.jobs, say)
        known = {case.name for _, case in whole_set}
        kept = {k: v for k, v in build.read_manifest(out).items() if k in known}
        kept.update(entries)
        build.write_manifest(out, kept)
        if not problems:
            build.remove_unlisted(out, kept)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(selected)} cases, {len(problems)} problems, {time.monotonic() - begin:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
