# SPDX-License-Identifier: BSD-3-Clause
"""tools/embed_wgsl.py on small trees: what it writes, and the sentence for each broken rule."""

import contextlib
import io
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import NamedTuple

TOOL = Path(__file__).resolve().parents[2] / "tools" / "embed_wgsl.py"
sys.path.insert(0, str(TOOL.parent))
import embed_wgsl  # noqa: E402

PARAMS = "struct Params { n: u32 }\n"
UNIFORM = "@group(1) @binding(0) var<uniform> p: Params;\n"
X = "@group(0) @binding(0) var<storage, read> x: array<T>;\n"
Y = "@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;\n"
MAIN = "@compute @workgroup_size(64) fn main() { y[0] = u32(x[p.n]); }\n"
GOOD = PARAMS + UNIFORM + X + Y + MAIN


class Outcome(NamedTuple):
    returncode: int
    stderr: str


class EmbedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name) / "src"
        self.out = Path(folder.name) / "generated" / "ops" / "add" / "add.wgsl.h"

    def embed(self, text, path="ops/add/add.wgsl", **parts):
        """Runs the tool on `text` at `path`, with parts in the folder ops/add."""
        files = {path: text, **{f"ops/add/{name}.wgsl": part for name, part in parts.items()}}
        for name, content in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(content, encoding="utf-8")
        stderr = io.StringIO()
        with contextlib.redirect_stderr(stderr):
            status = embed_wgsl.main(["--root", str(self.root), "--out", str(self.out),
                                      "--depfile", f"{self.out}.d", path])
        return Outcome(status, stderr.getvalue())

    def header(self, text, **parts):
        result = self.embed(text, **parts)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return self.out.read_text(encoding="utf-8")

    def finding(self, text, **parts):
        """The one finding, without the temporary root; checks that nothing was written."""
        result = self.embed(text, **parts)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertFalse(self.out.parent.exists())
        return result.stderr.strip().removeprefix(f"{self.root}/")

    def struct_of(self, members):
        header = self.header(f"struct Params {{ {members} }}\n" + UNIFORM + X + Y + MAIN)
        fields = re.search(r"kKernel = .*?\n(.*?)  bool operator", header, re.S)[1]
        offsets = [int(n) for n in re.findall(r"offsetof\(.*?\) == (\d+)", header)]
        size = int(re.search(r"sizeof\(AddParams\) == (\d+)", header)[1])
        return [field.strip() for field in fields.splitlines()], offsets, size

    # What it writes

    def test_a_kernel_becomes_a_header(self):
        header = self.header(GOOD)
        self.assertIn("namespace ptero::ops::wgsl {", header)
        self.assertIn("inline constexpr gpu::KernelSource kAdd{", header)
        self.assertIn('.name = "add",', header)
        self.assertIn('{"x", false},\n    {"y", true},', header)
        self.assertIn("std::uint32_t n{};", header)
        self.assertIn(".params_size = 4,", header)
        self.assertNotIn("uniform", header)
        self.assertIn(f'"{X.strip()}\\n"'.replace("\\\\", "\\"), header)

    def test_bindings_are_listed_by_number(self):
        header = self.header(PARAMS + UNIFORM + Y + X + MAIN)
        self.assertIn('{"x", false},\n    {"y", true},', header)

    def test_the_blanked_uniform_keeps_line_numbers(self):
        header = self.header(GOOD.replace("var<uniform>", "\n  var<uniform>\n "))
        text = re.findall(r'^        "(.*)\\n"$', header, re.M)
        self.assertEqual(text[4], X.strip())

    def test_the_hash_follows_the_text(self):
        hashes = set()
        for text in (GOOD, GOOD, GOOD.replace("u32(x", "2 * u32(x")):
            hashes.add(re.search(r"\.hash = (0x[0-9a-f]{16})u", self.header(text))[1])
        self.assertEqual(len(hashes), 2)

    def test_params_layout(self):
        members = "a: f32, b: vec2<i32>, c: vec3f, d: u32, e: vec4<f32>"
        fields, offsets, size = self.struct_of(members)
        self.assertEqual(offsets, [0, 8, 16, 28, 32])
        self.assertEqual(size, 48)
        self.assertEqual(fields, [
            "float a{};", "gpu::KernelPadding<4> padding0{};", "std::array<std::int32_t, 2> b{};",
            "std::array<float, 3> c{};", "std::uint32_t d{};", "std::array<float, 4> e{};"])

    def test_params_layout_with_an_array_and_padding_at_the_end(self):
        fields, offsets, size = self.struct_of("a: array<vec4u, 3>, b: i32,")
        self.assertEqual((offsets, size), ([0, 48], 64))
        self.assertEqual(fields, [
            "std::array<std::array<std::uint32_t, 4>, 3> a{};", "std::int32_t b{};",
            "gpu::KernelPadding<12> padding0{};"])
        self.assertIn(".params_have_array = true", self.out.read_text(encoding="utf-8"))

    def test_a_vec2_aligns_the_struct_to_eight(self):
        self.assertEqual(self.struct_of("a: vec2u, b: u32")[1:], ([0, 8], 16))

    def test_overrides_with_types_and_defaults(self):
        header = self.header(GOOD + "override wg_size: u32 = 64u;\noverride on: bool = true;\n"
                             "override eps: f32 = 1e-5;\noverride low: i32 = -4;\n"
                             "override tile: u32 = wg_size * 2;\noverride need: f16;\n")
        nan = "std::numeric_limits<double>::quiet_NaN()"
        for row in ('"wg_size", gpu::OverrideType::u32, true, 64.0',
                    '"on", gpu::OverrideType::boolean, true, 1.0',
                    '"eps", gpu::OverrideType::f32, true, 1e-05',
                    '"low", gpu::OverrideType::i32, true, -4.0',
                    f'"tile", gpu::OverrideType::u32, true, {nan}',
                    f'"need", gpu::OverrideType::f16, false, {nan}'):
            self.assertIn(row, header)

    def test_comments_hide_declarations(self):
        header = self.header("/* /* @group(3) */ // struct Params { b: bool } */\n"
                             "// override no: u32;\n" + GOOD)
        self.assertNotIn("OverrideDecl", header)

    def test_workgroup_and_private_variables_are_free(self):
        self.header(GOOD + "var<workgroup> tile: array<f32, 64>;\nvar<private> q: u32;\n")

    def test_a_part_is_included_once_and_tracked(self):
        two = '//#include "ops/add/a_part.wgsl"\n//#include "ops/add/b_part.wgsl"\n' + GOOD
        header = self.header(two, a_part='//#include "ops/add/b_part.wgsl"\nconst a = b;\n',
                             b_part="const b = 1;\n")
        self.assertEqual(header.count("const b = 1;"), 1)
        self.assertLess(header.index("const b = 1;"), header.index("const a = b;"))
        self.assertIn('    {1, "ops/add/add.wgsl", 1},\n    {2, "ops/add/a_part.wgsl", 1},\n'
                      '    {3, "ops/add/b_part.wgsl", 1},\n    {4, "ops/add/a_part.wgsl", 2},\n'
                      '    {5, "ops/add/add.wgsl", 2},\n', header)
        depfile = Path(f"{self.out}.d").read_text(encoding="utf-8")
        files = [self.root / f"ops/add/{name}.wgsl" for name in ("add", "a_part", "b_part")]
        self.assertEqual(depfile, f"{self.out}: {' '.join(map(str, files))}\n")

    def test_text_with_quotes_and_backslashes_survives(self):
        self.assertIn(r'// \"a\\b\" \tc', self.header(GOOD + '// "a\\b" \tc\n'))

    def test_a_failed_run_leaves_the_old_header(self):
        before = self.header(GOOD)
        self.assertEqual(self.embed(GOOD + "enable f16;").returncode, 1)
        self.assertEqual(self.out.read_text(encoding="utf-8"), before)
        self.assertEqual([p.name for p in self.out.parent.iterdir() if "tmp" in p.name], [])

    # What it rejects

    def check(self, text, expected, **parts):
        self.assertEqual(self.finding(text, **parts), expected)

    def test_params_types_without_a_uniform_layout(self):
        kinds = "is not u32, i32, f32, a vec2, vec3 or vec4 of them, or an array of a vec4."
        stride = "does not fill the uniform stride (16); a vec4 does."
        for kind, sentence in {
                "bool": f"Type (bool) of Params member (b) {kinds}",
                "f16": f"Type (f16) of Params member (b) {kinds}",
                "vec2<f16>": f"Type (vec2<f16>) of Params member (b) {kinds}",
                "vec4h": f"Type (vec4h) of Params member (b) {kinds}",
                "mat4x4f": f"Type (mat4x4f) of Params member (b) {kinds}",
                "array<u32>": f"Type (array<u32>) of Params member (b) {kinds}",
                "array<u32, 4>": f"Array element (u32) of Params member (b) {stride}",
                "array<vec3f, 4>": f"Array element (vec3f) of Params member (b) {stride}"}.items():
            with self.subTest(kind):
                text = f"struct Params {{\n  a: u32,\n  b: {kind},\n}}\n" + UNIFORM + X + Y + MAIN
                self.check(text, f"ops/add/add.wgsl:3: {sentence}")

    def test_params_members_with_attributes_and_empty_params(self):
        self.check("struct Params { @align(16) a: u32 }\n" + UNIFORM + MAIN, "ops/add/add.wgsl:1: "
                   "Member of Params has an attribute; its type alone places it.")
        self.check("struct Params {}\n" + UNIFORM + MAIN,
                   "ops/add/add.wgsl:1: Params has no members.")

    def test_params_and_p_go_together(self):
        self.check(PARAMS + X + MAIN, "ops/add/add.wgsl:1: Params has no "
                   "`@group(1) @binding(0) var<uniform> p: Params;`.")
        self.check(X + UNIFORM + MAIN, "ops/add/add.wgsl:2: Uniform p has no `struct Params`.")

    def test_variables_outside_group_0(self):
        rule = "only `@group(1) @binding(0) var<uniform> p: Params;` is outside group 0."
        for text, name, group, binding in (
                ("@group(2) @binding(0) var<storage> z: array<T>;", "z", "2", "0"),
                ("@group(1) @binding(0) var<uniform> q: Params;", "q", "1", "0"),
                ("@group(1) @binding(1) var<uniform> p: Params;", "p", "1", "1"),
                ("@group(N) @binding(0) var<storage> z: array<T>;", "z", "N", "0"),
                ("@group(0) @binding(1+1) var<storage> z: u32;", "z", "0", "1+1"),
                ("var<storage> z: array<T>;", "z", "", "")):
            with self.subTest(text):
                self.check(X + text + MAIN, f"ops/add/add.wgsl:2: Variable ({name}) is at group "
                           f"({group}) and binding ({binding}); {rule}")

    def test_group_0_holds_storage_buffers_only(self):
        self.check(GOOD + "@group(0) @binding(2) var<uniform> z: vec4f;\n",
                   "ops/add/add.wgsl:6: Variable (z) of group 0 is not a storage buffer.")
        self.check(GOOD + "@group(0) @binding(2) var t: texture_2d<f32>;\n",
                   "ops/add/add.wgsl:6: Variable (t) of group 0 is not a storage buffer.")

    def test_bindings_have_no_holes_and_no_twins(self):
        self.check(GOOD + X.replace("(0) var", "(3) var").replace("x:", "z:"),
                   "ops/add/add.wgsl:6: Bindings of group 0 have a hole at 2.")
        self.check(GOOD + X.replace("x:", "z:"),
                   "ops/add/add.wgsl:6: Binding (0) of z is taken by x.")

    def test_the_address_space_of_p_is_not_named(self):
        self.check(GOOD + "fn f(q: ptr<uniform, Params>) {}\n",
                   "ops/add/add.wgsl:6: Address space (uniform) is named; it may become immediate.")

    def test_directives_come_from_the_key(self):
        for directive in ("enable f16;", "requires x;", "diagnostic(off, a);"):
            name = re.match(r"\w+", directive)[0]
            self.check(directive + "\n" + GOOD, f"ops/add/add.wgsl:1: Directive ({name}) stands in "
                       "a kernel; the key's features emit it.")

    def test_entry_points(self):
        self.check(PARAMS + UNIFORM,
                   "ops/add/add.wgsl:1: Number of compute entry points (0) is not 1.")
        self.check(GOOD + "@compute @workgroup_size(1) fn other() {}\n",
                   "ops/add/add.wgsl:6: Entry point (other) is not named main.")
        self.check(GOOD + MAIN, "ops/add/add.wgsl:1: Number of compute entry points (2) is not 1.")

    def test_overrides(self):
        self.check(GOOD + "override a = 1u;\n", "ops/add/add.wgsl:6: Override (a) has no explicit "
                   "type (bool, i32, u32, f32, f16).")
        self.check(GOOD + "@id(3) override a: u32 = 1u;\n",
                   "ops/add/add.wgsl:6: Override (a) has an @id; overrides go by name.")

    def test_includes(self):
        self.check('\n//#include "ops/add/no_part.wgsl"\n' + GOOD, "ops/add/add.wgsl:2: "
                   "File (ops/add/no_part.wgsl) cannot be read: No such file or directory.")
        self.check('//#include "ops/add/b.wgsl"\n' + GOOD, "ops/add/add.wgsl:1: Included file "
                   "(ops/add/b.wgsl) is not named *_part.wgsl.", b="const b = 1;")
        self.check("//#if F16\n" + GOOD, "ops/add/add.wgsl:1: Directive (//#if F16) is not "
                   '//#include "path".')

    def test_an_include_cycle_is_shown(self):
        self.check('//#include "ops/add/a_part.wgsl"\n' + GOOD,
                   "ops/add/b_part.wgsl:1: Include closes a cycle (ops/add/add.wgsl -> "
                   "ops/add/a_part.wgsl -> ops/add/b_part.wgsl -> ops/add/a_part.wgsl).",
                   a_part='//#include "ops/add/b_part.wgsl"\n',
                   b_part='//#include "ops/add/a_part.wgsl"\n')

    def test_a_finding_in_a_part_names_the_part(self):
        self.check('//#include "ops/add/a_part.wgsl"\n' + GOOD, "ops/add/a_part.wgsl:2: Directive "
                   "(enable) stands in a kernel; the key's features emit it.",
                   a_part="// first\nenable f16;\n")
        self.check('//#include "ops/add/a_part.wgsl"\n' + GOOD + "enable f16;\n",
                   "ops/add/add.wgsl:7: Directive (enable) stands in a kernel; the key's features "
                   "emit it.", a_part="// one\n// two\n")

    def test_unfinished_text_is_a_finding_not_a_crash(self):
        for text, sentence in {
                "fn f() {": "Declaration is not closed.",
                "/* /* */": "Comment is not closed.",
                "@;": "Declaration is incomplete.",
                "@group(0};": "Declaration is incomplete.",
                "struct Params;": "Declaration is incomplete.",
                "override;": "Declaration is incomplete.",
                "var<storage> x;": "Declaration is incomplete."}.items():
            with self.subTest(text):
                self.check(f"\n{text}", f"ops/add/add.wgsl:2: {sentence}")

    def test_file_names(self):
        result = self.embed(GOOD, path="ops/add/Add.wgsl")
        self.assertEqual(result.returncode, 1)
        self.assertIn("Path (ops/add/Add.wgsl) is not layer/folders/snake_case.wgsl.",
                      result.stderr)

    def test_the_program_exits_with_the_status(self):
        path = self.root / "ops/add/add.wgsl"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"// \xff\n")
        command = [sys.executable, TOOL, "--root", self.root, "--out", self.out, "ops/add/add.wgsl"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((result.returncode, result.stderr),
                         (1, f"{path}:1: File is not UTF-8 text.\n"))


if __name__ == "__main__":
    unittest.main()
