# SPDX-License-Identifier: BSD-3-Clause
"""The checks in tools/check_*.py on trees that break each rule, and on ones that keep it."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import check_layers  # noqa: E402
import check_sizes  # noqa: E402
import check_text  # noqa: E402

LICENCE = "// SPDX-License-Identifier: BSD-3-Clause\n"


class TreeTest(unittest.TestCase):
    """Runs one check on a tree of {path: text}; findings read "file:line: sentence"."""

    check = None

    def findings(self, tree):
        with tempfile.TemporaryDirectory() as root:
            for path, text in tree.items():
                file = Path(root) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode() if isinstance(text, str) else text)
            found = sorted(type(self).check(Path(root)))
        return [f"{file}:{line}: {sentence}" for file, line, sentence in found]

    def expect(self, tree, *expected):
        self.assertEqual(self.findings(tree), list(expected))


class LayersTest(TreeTest):
    check = staticmethod(check_layers.check)

    def include(self, path, target):
        quoted = target if target.startswith("<") else f'"{target}"'
        return self.findings({path: f"#pragma once\n#  include {quoted}\n"})

    def test_includes_that_go_down(self):
        for path, target in (
                ("src/base/a.cc", "base/b.h"), ("src/gpu/a.h", "base/b.h"),
                ("src/graph/a.h", "gpu/b.h"), ("src/ops/add/a.cc", "ops/common/b.h"),
                ("src/ops/add/a.cc", "pte/b.h"), ("src/llm/a.cc", "passes/b.h"),
                ("src/pte/a.cc", "schema/program_generated.h"), ("src/gpu/a.cc", "<vector>"),
                ("src/gpu/a.cc", "<webgpu/webgpu_cpp.h>"), ("src/gpu/a.cc", "gpu/internal/b.h"),
                ("src/gpu/internal/a.h", "webgpu/webgpu_cpp.h"),
                ("src/gpu/a_gpu_test.cc", "gpu/native/wait.h"), ("apps/cli/a.cc", "cli/b.h"),
                ("src/gpu/native/a.cc", "gpu/native/wait.h"), ("apps/cli/a.cc", "llm/b.h"),
                ("apps/cli/a.cc", "gpu/native/wait.h")):
            with self.subTest(f"{path} {target}"):
                self.assertEqual(self.include(path, target), [])

    def test_includes_that_go_up_or_sideways(self):
        for path, target, sentence in (
                ("src/base/a.cc", "gpu/b.h", "of layer gpu is not below layer base."),
                ("src/gpu/a.h", "pte/b.h", "of layer pte is not below layer gpu."),
                ("src/ops/a.cc", "passes/b.h", "of layer passes is not below layer ops."),
                ("src/graph/a_test.cc", "ops/b.h", "of layer ops is not below layer graph."),
                ("src/llm/a.cc", "apps/cli/b.h", "does not start with a layer's folder below src."),
                ("src/llm/a.cc", "neighbour.h", "does not start with a layer's folder below src."),
                ("src/graph/a.cc", "schema/vkgraph_generated.h",
                 "is of a generated schema; only pte uses it."),
                ("src/llm/a.cc", "gpu/native/wait.h",
                 "brings the blocking wait into the core, which links without it.")):
            with self.subTest(f"{path} {target}"):
                self.assertEqual(self.include(path, target),
                                 [f"{path}:2: Include ({target}) {sentence}"])

    def test_webgpu_stays_inside_src_gpu(self):
        public = ("stands in a header that other layers include; it belongs in a .cc or in "
                  "src/gpu/internal.")
        for path, target, sentence in (
                ("src/ops/a.cc", "<webgpu/webgpu_cpp.h>", "is of WebGPU; only src/gpu uses it."),
                ("apps/cli/a.cc", "webgpu/webgpu.h", "is of WebGPU; only src/gpu uses it."),
                ("tests/core/a.cc", "dawn/native.h", "is of WebGPU; only src/gpu uses it."),
                ("src/gpu/a.h", "<webgpu/webgpu_cpp.h>", public),
                ("src/gpu/native/a.h", "dawn/native.h", public),
                ("src/ops/a.cc", "gpu/internal/b.h", "is private to src/gpu."),
                ("bench/a.cc", "gpu/internal/b.h", "is private to src/gpu."),
                ("src/gpu/a.h", "gpu/internal/b.h",
                 "stands in a header that other layers include.")):
            with self.subTest(f"{path} {target}"):
                self.assertEqual(self.include(path, target), [
                    f"{path}:2: Include ({target.strip('<>')}) {sentence}"])

    def test_includes_in_comments_do_not_count(self):
        self.expect({"src/base/a.cc": '// #include "gpu/b.h"\n/*\n#include "gpu/b.h"\n*/\n'})

    def test_platform_macros(self):
        text = "#if defined(_WIN32) || defined(__EMSCRIPTEN__)\n#endif\n"
        self.expect({"src/base/platform_map.cc": text, "src/base/map_test.cc": text})
        self.expect({"src/base/map.cc": "\n" + text},
                    "src/base/map.cc:2: Platform macro (_WIN32) stands outside a file named "
                    "platform_*.",
                    "src/base/map.cc:2: Platform macro (__EMSCRIPTEN__) stands outside a file "
                    "named platform_*.")

    def test_libraries_do_not_throw_end_or_print(self):
        for code, word in {
                "throw 1;": "throw", "try {": "try", "} catch (...) {": "catch",
                "std::abort();": "abort", "exit (1);": "exit", "std::terminate();": "terminate",
                'printf("");': "printf", 'std::fprintf(f, "");': "fprintf", 'puts("");': "puts",
                "std::cout << 1;": "cout", "std::cerr << 1;": "cerr", "f(stderr);": "stderr",
                'fmt::print("");': "fmt::print", 'fmt::println("");': "fmt::println"}.items():
            with self.subTest(code):
                self.assertEqual(len(self.findings({"src/llm/a.h": code + "\n"})), 1)
                self.assertIn(f"src/llm/a.h:1: Use of {word} stands in a library",
                              self.findings({"src/llm/a.h": code + "\n"})[0])
                self.expect({"src/llm/a_test.cc": code, "apps/cli/a.cc": code})

    def test_words_that_only_look_banned(self):
        self.expect({"src/llm/a.cc": '// a later try prints to stdout\nauto s = "throw \\" try";\n'
                     'std::snprintf(b, 8, "%d", 1); retry(); loop.exit(); x->abort();\n'
                     "auto r = R\"x(abort(); \" )x\"; int n = 1'000; char c = '\\''; rethrow();\n"})

    def test_code_after_a_literal_is_still_read(self):
        self.expect({"src/llm/a.cc": "char c = '\"'; auto s = \"a\\\"\"; throw 1; // \"\n"},
                    "src/llm/a.cc:1: Use of throw stands in a library; an error is a Result, not "
                    "an exception.")

    def test_the_blocking_wait(self):
        self.expect({"src/gpu/native/wait.cc": "instance.WaitAny(f, 1);\n"})
        self.expect({"src/gpu/a.cc": "\ninstance.WaitAny(f, 1);\n"},
                    "src/gpu/a.cc:2: Blocking wait (WaitAny) stands outside src/gpu/native.")

    def test_every_folder_of_src_is_a_layer(self):
        self.expect({"src/util/CMakeLists.txt": "", "src/main.cc": ""},
                    "src/main.cc:1: File of src is in no layer's folder.",
                    "src/util/CMakeLists.txt:1: Folder (src/util) is not a layer (base, gpu, pte, "
                    "gguf, text, graph, ops, passes, llm, convert).")


class SizesTest(TreeTest):
    check = staticmethod(check_sizes.check)

    def test_limits(self):
        for name, limit in (("a.cc", 400), ("a.h", 400), ("a.py", 400), ("a.sh", 400),
                            ("a.wgsl", 200)):
            with self.subTest(name):
                self.expect({name: "x\n" * limit})
                self.expect({name: "x\n" * (limit + 1)},
                            f"{name}:{limit + 1}: Length ({limit + 1} lines) exceeds the limit "
                            f"({limit}) without a `size:` reason in the first 15 lines.")

    def test_a_script_without_suffix_is_a_script(self):
        self.assertEqual(len(self.findings({"dev": "#!/usr/bin/env bash\n" + "x\n" * 400})), 1)

    def test_other_files_are_as_long_as_they_like(self):
        self.expect({"a.md": "x\n" * 999, "data": "x\n" * 999, "build/ci/a.cc": "x\n" * 999})
        self.assertEqual(len(self.findings({"apps/build/a.cc": "x\n" * 999})), 1)

    def test_a_reason_lifts_the_limit(self):
        self.expect({"a.cc": "//\n// size: one table, read top to bottom\n" + "x\n" * 999,
                     "a.py": "x\n" * 14 + "# size: one table, read top to bottom\n" + "x\n" * 999})

    def test_a_late_or_empty_reason_does_not(self):
        late = self.findings({"a.cc": "x\n" * 15 + "// size: one table, read top to bottom\n"
                              + "x\n" * 400})
        self.assertEqual([f.split(" without")[0] for f in late],
                         ["a.cc:416: Length (416 lines) exceeds the limit (400)"])
        self.expect({"a.cc": "// size:\n"}, "a.cc:1: Reason for the size () says too little.")


class TextTest(TreeTest):
    check = staticmethod(check_text.check)

    def test_licence_lines(self):
        line = "SPDX-License-Identifier: BSD-3-Clause"
        self.expect({"a.cc": LICENCE, "b.py": f"#!/usr/bin/env python3\n# {line}\n",
                     "c.sh": f"# shellcheck shell=bash\n# {line}\n", "d.md": "x\n"})
        for path, text, number in (
                ("a.cc", "\n" + LICENCE, 1), ("a.h", "", 1), ("b.py", "#!/bin/python3\n", 2),
                ("src/gpu/CMakeLists.txt", "x\n", 1), ("k.wgsl", "x\n", 1),
                ("run", "#!/bin/sh\n", 2)):
            with self.subTest(path):
                self.expect({path: text}, f"{path}:{number}: Line is not the licence ({line}).")

    def test_white_space(self):
        for text, number, sentence in (
                ("a\tb\n", 1, "Line has a tab."), ("a\nb \n", 2, "Line ends in white space."),
                ("a\r\n", 1, "Line ends in white space."),
                ("a\n\n", 2, "File ends with an empty line."),
                ("a\nb", 2, "File does not end with a newline.")):
            with self.subTest(text):
                self.expect({"a.md": text}, f"a.md:{number}: {sentence}")
                self.expect({"testdata/a.txt": text, "src/pte/read_corpus/a.txt": text})

    def test_hosts_and_machine_paths(self):
        host, home = ".".join(("files", "pythonhosted", "org")), "/" + "home/someone/x"
        self.expect({"a.md": f"see https://{host}/x\n"},
                    f"a.md:1: Host of a package registry ({host}) is named.")
        self.expect({"a.md": f"\nin {home}\n"},
                    "a.md:2: Path of one machine (/" + "home/someone) is named.")
        self.expect({"testdata/a.json": '"/' + 'work/x"\n'},
                    "testdata/a.json:1: Path of one machine (/" + "work/x) is named.")
        self.expect({"a.md": "a network/work/x, $HOME/root/y, example.org, --root/x\n"})

    def test_skips(self):
        for path, skip in (
                ("src/gpu/a_test.cc", "GTEST_" + "SKIP()"),
                ("src/gpu/a_gpu_test.cc", 'TEST_CASE("a" * doctest::' + "skip())"),
                ("tests/python/test_a.py", "pytest." + "skip('no adapter')"),
                ("tests/cli/test_a.py", "@pytest.mark." + "skipif(True)"),
                ("tests/python/test_a.py", "self.skip" + "Test('no')"),
                ("tests/python/test_a.py", "@unittest." + "skipUnless(x)"),
                ("tests/CMakeLists.txt", "SKIP_RETURN" + "_CODE 77")):
            with self.subTest(skip):
                found = [f for f in self.findings({path: f"\n{skip}\n"}) if "Skip (" in f]
                self.assertEqual(len(found), 1)
                self.assertTrue(found[0].startswith(f"{path}:2: "), found[0])
                self.assertIn("reads as passed; a test runs or fails.", found[0])

    LISTS = {
        "CMakeLists.txt": "# SPDX-License-Identifier: BSD-3-Clause\nadd_subdirectory(src/gpu)\n"
                          "# add_subdirectory(src/ops)\nadd_subdirectory(tests)\n",
        "src/gpu/CMakeLists.txt": "# SPDX-License-Identifier: BSD-3-Clause\n"
                                  'ptero_layer(gpu EXCLUDE "/gpu/native/" DEPENDS ptero_base)\n',
        "src/ops/CMakeLists.txt": "# SPDX-License-Identifier: BSD-3-Clause\nptero_layer(ops)\n",
        "tests/CMakeLists.txt": "# SPDX-License-Identifier: BSD-3-Clause\n"
                                "ptero_test(link SOURCES core/link_test.cc)  # core/idea_test.cc\n"}

    def test_tests_that_are_built(self):
        self.expect({**self.LISTS, "src/gpu/a_test.cc": LICENCE, "src/gpu/deep/b_test.cc": LICENCE,
                     "tests/core/link_test.cc": LICENCE})

    def test_tests_that_nothing_builds(self):
        sentence = "Test is in no folder that ptero_layer() or tests/ builds."
        for path in ("src/gpu/native/a_test.cc", "src/ops/a_test.cc", "src/new/a_test.cc",
                     "tests/core/other_test.cc", "tests/core/idea_test.cc", "apps/cli/a_test.cc",
                     "stray_test.cc"):
            with self.subTest(path):
                self.expect({**self.LISTS, path: LICENCE}, f"{path}:1: {sentence}")


class ProgramTest(unittest.TestCase):
    def run_check(self, name, root):
        return subprocess.run([sys.executable, TOOLS / f"{name}.py", root], capture_output=True,
                              text=True, timeout=120, check=False)

    def test_exit_status_and_output(self):
        with tempfile.TemporaryDirectory() as root:
            for name in ("check_layers", "check_sizes", "check_text"):
                result = self.run_check(name, root)
                self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
            bad = Path(root) / "src" / "gpu" / "a.cc"
            bad.parent.mkdir(parents=True)
            bad.write_text("throw 1;\n" * 401, encoding="utf-8")
            for name, count in (("check_layers", 401), ("check_sizes", 1), ("check_text", 1)):
                result = self.run_check(name, root)
                self.assertEqual((result.returncode, result.stderr), (1, ""))
                lines = result.stdout.splitlines()
                self.assertEqual(len(lines), count)
                self.assertRegex(lines[0], r"^src/gpu/a\.cc:\d+: [A-Z].*\.$")

    def test_a_missing_root_is_no_clean_root(self):
        self.assertEqual(self.run_check("check_layers", "/nonexistent").returncode, 2)


if __name__ == "__main__":
    unittest.main()
