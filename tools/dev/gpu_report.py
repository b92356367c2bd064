#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints which adapter each GPU test ran on, and fails when it is not the one it should be.

A GPU test program prints one line "adapter: <name> ..." on the adapter it uses.
usage: gpu_report.py lavapipe|swiftshader CTEST_JUNIT.xml
"""
import re
import sys
import xml.etree.ElementTree as ElementTree

EXPECTED = {"lavapipe": "llvmpipe", "swiftshader": "swiftshader"}


def main() -> int:
    adapter, path = sys.argv[1:]
    wrong = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        lines = re.findall(r"^adapter: (.+)$", output, re.MULTILINE)
        matches = bool(lines) and all(EXPECTED[adapter] in line.lower() for line in lines)
        shown = "; ".join(sorted(set(lines))) or "none reported"
        print(f"  {case.get('name')}: {shown}" + ("" if matches else f"  <- not {adapter}"))
        wrong += not matches
    if wrong:
        print(f"{wrong} GPU test program(s) did not show that they ran on {adapter}.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
