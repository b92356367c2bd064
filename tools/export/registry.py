# SPDX-License-Identifier: BSD-3-Clause
"""All cases, one module of `tools/export/cases` per operator family."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from tools.export import cases
from tools.export.case import Case


@functools.cache
def families() -> dict[str, list[Case]]:
    """Cases by family, both in the order in which the manifest lists them."""
    found: dict[str, list[Case]] = {}
    names: set[str] = set()
    for module in sorted(m.name for m in pkgutil.iter_modules(cases.__path__)):
        found[module] = list(importlib.import_module(f"{cases.__name__}.{module}").CASES)
        for case in found[module]:
            if case.name in names:
                raise ValueError(f"two cases have the same name ({case.name})")
            names.add(case.name)
    return found


def select(big: bool | None = None) -> list[tuple[str, Case]]:
    """(family, case) of the committed set (big=False), the generated one (True) or both (None)."""
    return [
        (family, case)
        for family, members in families().items()
        for case in members
        if big is None or case.big == big
    ]
