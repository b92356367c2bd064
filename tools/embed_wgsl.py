#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Turns one WGSL kernel into a C++ header: its text, bindings, overrides and parameter struct.

The convention that a kernel file follows is in docs/kernels.md. A violation is one sentence
"file:line: ..." on stderr and exit status 1; what was written before is then left as it was.
"""

import argparse
import hashlib
import os
import re
import sys
from pathlib import Path

from wgsl_kernel import Kernel, KernelError, Source

INCLUDES = ("array", "cstddef", "cstdint", "limits", "span", "string_view", "type_traits")


def boolean(value):
    return "true" if value else "false"


def cpp_string(text):
    escapes = {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\r": "\\r", "\n": "\\n"}
    return '"' + "".join(escapes.get(character, character) for character in text) + '"'


def literal(expression):
    """A WGSL literal as a C++ double; NaN for what only the shader compiler can evaluate."""
    if expression in ("true", "false"):
        return "1.0" if expression == "true" else "0.0"
    if integer := re.fullmatch(r"(-?)(0[xX][0-9a-fA-F]+|\d+)[iu]?", expression or ""):
        return repr(float(int(integer[2], 0)) * (-1 if integer[1] else 1))
    if real := re.fullmatch(r"(-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fh]?", expression or ""):
        return repr(float(real[1]))
    return "std::numeric_limits<double>::quiet_NaN()"


def params_struct(kernel, pascal, stem):
    """The C++ twin of `struct Params`; padding is explicit, so that its bytes are zero."""
    name = f"{pascal}Params"
    fields, end, pads = [], 0, 0
    for member in kernel.members:
        if member.offset > end:
            fields.append(f"  gpu::KernelPadding<{member.offset - end}> padding{pads}{{}};")
            pads += 1
        fields.append(f"  {member.cpp} {member.name}{{}};")
        end = member.offset + member.size
    if kernel.params_size > end:
        fields.append(f"  gpu::KernelPadding<{kernel.params_size - end}> padding{pads}{{}};")
    return [
        f"// `struct Params` of {stem}.wgsl, byte for byte.",
        f"struct {name} {{",
        f'  static constexpr std::string_view kKernel = "{stem}";',
        *fields,
        f"  bool operator==(const {name}&) const = default;",
        "};",
        *(f"static_assert(offsetof({name}, {m.name}) == {m.offset});" for m in kernel.members),
        f"static_assert(sizeof({name}) == {kernel.params_size});",
        f"static_assert(std::is_trivially_copyable_v<{name}>);",
        "",
    ]


def table(kind, name, rows):
    """An array of rows, and the expression that refers to it (C++ has no empty arrays)."""
    if not rows:
        return "{}", []
    body = [f"    {{{row}}}," for row in rows]
    return f"detail::{name}", [f"inline constexpr gpu::{kind} {name}[] = {{", *body, "};"]


def header(kernel):
    path, stem = kernel.source.path, Path(kernel.source.path).stem
    if not re.fullmatch(r"[a-z][a-z0-9_]*/(?:.*/)?[a-z][a-z0-9_]*\.wgsl", path):
        kernel.source.fail(0, f"Path ({path}) is not layer/folders/snake_case.wgsl.")
    pascal = "".join(word.capitalize() for word in stem.split("_"))
    digest = hashlib.blake2b(kernel.text.encode(), digest_size=8).hexdigest()
    bindings, binding_table = table("BindingDecl", f"k{pascal}Bindings", [
        f'"{binding.name}", {boolean(binding.writes)}'
        for _, binding in sorted(kernel.bindings.items())])
    spans, span_table = table("SourceSpan", f"k{pascal}Spans", [
        f'{first}, "{file}", {line}' for first, file, line in kernel.source.spans])
    overrides, override_table = table("OverrideDecl", f"k{pascal}Overrides", [
        f'"{override.name}", gpu::OverrideType::{override.kind.replace("bool", "boolean")}, '
        f"{boolean(override.default is not None)}, {literal(override.default)}"
        for override in kernel.overrides])
    namespace = f"ptero::{path.split('/')[0]}::wgsl"
    return "\n".join([
        f"// Generated from {path} by tools/embed_wgsl.py; edit that file instead.",
        "#pragma once",
        "",
        *(f"#include <{name}>" for name in INCLUDES),
        "",
        '#include "gpu/kernel_source.h"',
        "",
        f"namespace {namespace} {{",
        "",
        *(params_struct(kernel, pascal, stem) if kernel.members else []),
        "namespace detail {",
        *binding_table,
        *span_table,
        *override_table,
        "}  // namespace detail",
        "",
        f"inline constexpr gpu::KernelSource k{pascal}{{",
        f'    .name = "{stem}",',
        "    .text =",
        *("        " + cpp_string(line + "\n") for line in kernel.text.split("\n")[:-1]),
        "    ,",
        f"    .bindings = {bindings},",
        f"    .params_size = {kernel.params_size},",
        f"    .params_have_array = {boolean(any(member.is_array for member in kernel.members))},",
        f"    .spans = {spans},",
        f"    .overrides = {overrides},",
        f"    .hash = 0x{digest}u,",
        "};",
        "",
        f"}}  // namespace {namespace}",
        "",
    ])


def write(path, text):
    """Replaces a file in one step, so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernel", help="path below the root, for example ops/softmax/softmax.wgsl")
    parser.add_argument("--root", required=True, type=Path, help="folder that paths start from")
    parser.add_argument("--out", required=True, type=Path, help="header to write")
    parser.add_argument("--depfile", type=Path, help="list of the files read, for the build tool")
    args = parser.parse_args(argv)
    try:
        kernel = Kernel(Source(args.root, args.kernel))
        text = header(kernel)
    except KernelError as error:
        print(error, file=sys.stderr)
        return 1
    if args.depfile:
        names = [str(args.out), *(str(args.root / file) for file in kernel.source.files)]
        target, *files = (name.replace(" ", "\\ ") for name in names)
        write(args.depfile, f"{target}: {' '.join(files)}\n")
    write(args.out, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
