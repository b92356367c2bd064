# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# The operator that docs/adding-an-operator.md writes, added to a copy of the project.

sample_dir=build/sample

# Everything that git knows or would take, as it is now; the copy keeps its build folder.
sample_copy() {
  mkdir -p "$sample_dir/build"
  find "$sample_dir" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
  git ls-files --cached --others --exclude-standard -z |
    tar --null --files-from=- --ignore-failed-read --create --file - 2>/dev/null |
    tar -C "$sample_dir" --extract --file -
  cp build/env.sh "$sample_dir/build/"
}

sample_stage() {
  sample_copy
  (
    cd "$sample_dir" || exit 1
    git init -q .
    git add -A
    git -c user.name=ptero -c user.email=ptero@localhost commit -qm before
  )
  python3 tools/dev/sample_operator.py docs/adding-an-operator.md "$sample_dir"
  (
    cd "$sample_dir" || exit 1
    git add -A
    changed=$(git diff --cached --name-only | sed 's|/[^/]*$||' | sort -u)
    say "Folders that the new operator changes: $changed"
    [[ $changed == src/ops/cumsum ]] || die 1 "The sample changes more than its own folder."
    # The other families' tests have run already.
    find src/ops -mindepth 2 -name '*_test.cc' ! -path 'src/ops/cumsum/*' -delete
    configure ci
    cmake --build build/ci --parallel "$(cores)" --target ops_test ops_gpu_test
    ctest --test-dir build/ci --output-on-failure --no-tests=error -R '^ops_'
    for test in ops_test ops_gpu_test; do
      "build/ci/src/ops/$test" --list-test-cases --test-case='cumsum*' | grep -q '^cumsum' ||
        die 1 "The sample's cases are not in $test."
    done
    files=$(find src/ops/cumsum -name '*.cc')
    # shellcheck disable=SC2086
    "$OLDPWD/build/venv-tools/bin/clang-format" --dry-run --Werror $files
    for check in tools/check_layers.py tools/check_sizes.py tools/check_text.py; do
      python3 "$check"
    done
  )
}
