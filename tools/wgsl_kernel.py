# SPDX-License-Identifier: BSD-3-Clause
"""Reads a WGSL kernel with its include parts and checks it against docs/kernels.md.

Only what the host must know is parsed: top-level declarations, storage bindings, overrides and
`struct Params`. Whether the rest is valid WGSL is the shader compiler's business.
"""

import bisect
import re
from pathlib import Path
from typing import NamedTuple

INCLUDE = re.compile(r'\s*//#include "([^"]+)"\s*$')
TOKEN = re.compile(r"[A-Za-z_]\w*|(?:\d|\.\d)(?:[eEpP][+-]|[\w.])*|\S")
SCALARS = {"u32": "std::uint32_t", "i32": "std::int32_t", "f32": "float"}
OVERRIDE_TYPES = ("bool", "i32", "u32", "f32", "f16")


class KernelError(Exception):
    """A finding in a kernel file; str() is the whole line to print."""

    def __init__(self, file, line, sentence):
        super().__init__(f"{file}:{line}: {sentence}")


class Token(NamedTuple):
    text: str
    start: int
    end: int


class Member(NamedTuple):
    name: str
    cpp: str  # C++ type
    offset: int
    size: int
    is_array: bool


class Binding(NamedTuple):
    name: str
    writes: bool
    token: Token


class Override(NamedTuple):
    name: str
    kind: str
    default: str | None  # WGSL expression


def joined(tokens):
    return "".join(token.text for token in tokens)


class Source:
    """A kernel with its parts in one text, and the way back from a position to file and line."""

    def __init__(self, root, path):
        self.root, self.path = Path(root), path
        self.lines, self.spans, self.files = [], [], []
        self._append(path, [], (self.root / path, 1))
        self.text = "\n".join(self.lines) + "\n"
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def _append(self, path, chain, where):
        if path in chain:
            cycle = " -> ".join([*chain, path])
            raise KernelError(*where, f"Include closes a cycle ({cycle}).")
        if path in self.files:
            return
        try:
            lines = (self.root / path).read_text(encoding="utf-8").split("\n")
        except OSError as error:
            sentence = f"File ({path}) cannot be read: {error.strerror}."
            raise KernelError(*where, sentence) from None
        except UnicodeDecodeError:
            raise KernelError(self.root / path, 1, "File is not UTF-8 text.") from None
        self.files.append(path)
        self._mark(path, 1)
        for number, line in enumerate(lines if lines[-1] else lines[:-1], 1):
            here, include = (self.root / path, number), INCLUDE.match(line)
            self.lines.append(line)
            if include and include[1].endswith("_part.wgsl"):
                self._append(include[1], [*chain, path], here)
                self._mark(path, number + 1)
            elif include:
                raise KernelError(*here, f"Included file ({include[1]}) is not named *_part.wgsl.")
            elif line.lstrip().startswith("//#"):
                raise KernelError(*here, f'Directive ({line.strip()}) is not //#include "path".')

    def _mark(self, path, file_line):
        if self.spans and self.spans[-1][0] == len(self.lines) + 1:
            self.spans.pop()
        self.spans.append((len(self.lines) + 1, path, file_line))

    def fail(self, where, sentence):
        position = where.start if isinstance(where, Token) else where
        line = bisect.bisect_right(self._starts, position)
        first, path, file_line = [span for span in self.spans if span[0] <= line][-1]
        raise KernelError(self.root / path, file_line + line - first, sentence)

    def tokens(self):
        code = self._without_comments()
        return [Token(match[0], match.start(), match.end()) for match in TOKEN.finditer(code)]

    def _without_comments(self):
        """The text with comments as spaces; block comments nest in WGSL."""
        code, position = self.text, 0
        while opening := re.compile(r"//[^\n]*|/\*").search(code, position):
            start, position = opening.span()
            depth = int(opening[0] == "/*")
            while depth > 0:
                mark = re.compile(r"/\*|\*/").search(code, position)
                if mark is None:
                    self.fail(start, "Comment is not closed.")
                depth += 1 if mark[0] == "/*" else -1
                position = mark.end()
            blank = re.sub(r"[^\n]", " ", code[start:position])
            code = code[:start] + blank + code[position:]
        return code

    def declarations(self):
        """Top-level declarations as token lists, each up to its ';' or closing '}'."""
        current, depth = [], 0
        for token in self.tokens():
            current.append(token)
            depth += (token.text in "{([") - (token.text in "})]")
            if depth == 0 and token.text in ";}":
                if len(current) > 1:
                    yield current
                current = []
        if current:
            self.fail(current[0], "Declaration is not closed.")


def attributes(tokens):
    """Splits leading @name(argument) off: {name: argument text} and the other tokens."""
    found, i = {}, 0
    while tokens[i].text == "@":
        name, i, first = tokens[i + 1].text, i + 2, i + 3
        found[name] = ""
        if tokens[i].text == "(":
            depth = 1
            while depth > 0:
                i += 1
                depth += (tokens[i].text == "(") - (tokens[i].text == ")")
            found[name] = joined(tokens[first:i])
            i += 1
    return found, tokens[i:]


class Kernel:
    """What a kernel declares. Raises KernelError where it leaves the convention."""

    def __init__(self, source):
        self.source = source
        self.bindings: dict[int, Binding] = {}
        self.overrides: list[Override] = []
        self.members: list[Member] = []
        self.params_size = 0
        self._struct, self._uniform, self._entries = None, [], 0
        for declaration in source.declarations():
            try:
                self._declare(declaration, *attributes(declaration))
            except (IndexError, StopIteration):
                source.fail(declaration[0], "Declaration is incomplete.")
        self._check()
        self.text = source.text
        if self._uniform:  # blanked, so that lines keep their numbers: assemble_wgsl() declares p
            start, end = self._uniform[0].start, self._uniform[-1].end
            blank = re.sub(r"[^\n]", "", self.text[start:end])
            self.text = self.text[:start] + blank + self.text[end:]

    def _declare(self, declaration, attrs, tokens):
        fail, head, name = self.source.fail, tokens[0], tokens[1]
        if head.text in ("enable", "requires", "diagnostic"):
            fail(head, f"Directive ({head.text}) stands in a kernel; the key's features emit it.")
        elif head.text == "struct" and name.text == "Params":
            self._struct = name
            self._params(tokens)
        elif head.text == "override":
            self._override(attrs, tokens)
        elif head.text == "var":
            self._variable(declaration, attrs, tokens)
        elif head.text == "fn" and "compute" in attrs:
            self._entries += 1
            if name.text != "main":
                fail(name, f"Entry point ({name.text}) is not named main.")
        if not self._uniform or declaration[0] != self._uniform[0]:
            for token in tokens:
                if token.text == "uniform":
                    fail(token, "Address space (uniform) is named; it may become immediate.")

    def _check(self):
        if self._entries != 1:
            self.source.fail(0, f"Number of compute entry points ({self._entries}) is not 1.")
        if self._struct and not self._uniform:
            sentence = "Params has no `@group(1) @binding(0) var<uniform> p: Params;`."
            self.source.fail(self._struct, sentence)
        if self._uniform and not self._struct:
            self.source.fail(self._uniform[0], "Uniform p has no `struct Params`.")
        holes = [i for i in range(len(self.bindings)) if i not in self.bindings]
        if holes:
            last = self.bindings[max(self.bindings)].token
            self.source.fail(last, f"Bindings of group 0 have a hole at {holes[0]}.")

    def _override(self, attrs, tokens):
        name = tokens[1].text
        if "id" in attrs:
            self.source.fail(tokens[0], f"Override ({name}) has an @id; overrides go by name.")
        if tokens[2].text != ":" or tokens[3].text not in OVERRIDE_TYPES:
            types = ", ".join(OVERRIDE_TYPES)
            self.source.fail(tokens[1], f"Override ({name}) has no explicit type ({types}).")
        default = joined(tokens[5:-1]) if tokens[4].text == "=" else None
        self.overrides.append(Override(name, tokens[3].text, default))

    def _variable(self, declaration, attrs, tokens):
        fail, colon = self.source.fail, next(i for i, t in enumerate(tokens) if t.text == ":")
        name, space = tokens[colon - 1], joined(tokens[1 : colon - 1])
        if space in ("<workgroup>", "<private>"):
            return
        place = (attrs.get("group", ""), attrs.get("binding", ""))
        typed_name = joined(tokens[colon - 1 :])
        if (space, typed_name, place) == ("<uniform>", "p:Params;", ("1", "0")):
            self._uniform = declaration
            return
        if place[0] != "0" or not place[1].isdecimal():
            fail(name, f"Variable ({name.text}) is at group ({place[0]}) and binding ({place[1]}); "
                       "only `@group(1) @binding(0) var<uniform> p: Params;` is outside group 0.")
        if space not in ("<storage>", "<storage,read>", "<storage,read_write>"):
            fail(name, f"Variable ({name.text}) of group 0 is not a storage buffer.")
        binding = int(place[1])
        if binding in self.bindings:
            taken = self.bindings[binding].name
            fail(name, f"Binding ({binding}) of {name.text} is taken by {taken}.")
        self.bindings[binding] = Binding(name.text, space.endswith("read_write>"), name)

    def _params(self, tokens):
        """Members with C++ types and offsets, by WGSL's rules for the uniform address space."""
        opening = next(i for i, token in enumerate(tokens) if token.text == "{")
        groups, depth = [[]], 0
        for token in tokens[opening + 1 : -1]:
            depth += (token.text in "<(") - (token.text in ">)")
            if token.text == "," and depth == 0:
                groups.append([])
            else:
                groups[-1].append(token)
        end, struct_align = 0, 4
        for group in filter(None, groups):
            name, kind = group[0], joined(group[2:])
            if name.text == "@":
                sentence = "Member of Params has an attribute; its type alone places it."
                self.source.fail(name, sentence)
            align, size, cpp = self._layout(name, kind)
            offset, struct_align = -(-end // align) * align, max(align, struct_align)
            self.members.append(Member(name.text, cpp, offset, size, kind.startswith("array")))
            end = offset + size
        if not self.members:
            self.source.fail(tokens[1], "Params has no members.")
        self.params_size = -(-end // struct_align) * struct_align

    def _layout(self, name, kind):
        """(alignment, size, C++ type) of one member."""
        array = re.fullmatch(r"array<(.+),([1-9]\d*)u?,?>", kind)
        vector = re.fullmatch(r"vec([234])(?:([uif])|<([uif]32)>)", kind)
        if array:
            align, size, cpp = self._layout(name, array[1])
            if array[1].startswith("array") or (align, size) != (16, 16):
                self.source.fail(name, f"Array element ({array[1]}) of Params member ({name.text}) "
                                       "does not fill the uniform stride (16); a vec4 does.")
            return align, size * int(array[2]), f"std::array<{cpp}, {array[2]}>"
        if vector:
            count, scalar = int(vector[1]), SCALARS[vector[3] or vector[2] + "32"]
            return (8 if count == 2 else 16), 4 * count, f"std::array<{scalar}, {count}>"
        if kind not in SCALARS:
            self.source.fail(name, f"Type ({kind}) of Params member ({name.text}) is not u32, i32, "
                                   "f32, a vec2, vec3 or vec4 of them, or an array of a vec4.")
        return 4, 4, SCALARS[kind]
