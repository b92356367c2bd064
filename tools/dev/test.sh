# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# ./dev test and ./dev check: stages that all run, whatever fails before them, and a table.

stage_names=() stage_times=() stage_results=()

# stage NAME COMMAND...
stage() {
  local name=$1 start=$SECONDS status
  shift
  say ''
  say "=== $name"
  set +e
  (set -e; "$@")
  status=$?
  set -e
  stage_names+=("$name")
  stage_times+=($((SECONDS - start)))
  if ((status == 0)); then stage_results+=(passed); else stage_results+=(FAILED); fi
}

stage_table() {
  local i failed=()
  say ''
  say "=== Stages"
  for i in "${!stage_names[@]}"; do
    printf '  %-34s %5d s  %s\n' "${stage_names[i]}" "${stage_times[i]}" "${stage_results[i]}"
    [[ ${stage_results[i]} == passed ]] || failed+=("${stage_names[i]}")
  done
  printf '  %-34s %5d s\n' total "$SECONDS"
  if ((${#failed[@]})); then
    printf 'Failed: %s\n' "${failed[@]}"
    say "$((${#stage_names[@]} - ${#failed[@]})) passed, ${#failed[@]} failed"
    return 1
  fi
  say "${#stage_names[@]} passed, 0 failed"
}

cmd_test() { run_stages test 10; }
cmd_check() { run_stages check 60; }

run_stages() {
  local command=$1 fuzz_seconds=$2 check
  SECONDS=0
  # Without the tools nothing below can run, so a failed set-up ends here with its own message.
  ensure_setup test
  stage_names=(set-up) stage_times=("$SECONDS") stage_results=(passed)
  stage "build" build_preset ci
  stage "unit tests" ctest_stage ci -LE gpu --parallel "$(cores)"
  stage "GPU tests on lavapipe" gpu_stage lavapipe
  stage "GPU tests on SwiftShader" gpu_stage swiftshader
  if compgen -G 'tests/cli/test_*.py' >/dev/null; then
    stage "command-line tests" cli_stage
  fi
  if compgen -G 'tests/python/test_*.py' >/dev/null; then
    stage "Python tests" python_stage
  fi
  if [[ $command == check && -e tools/export/__main__.py ]]; then
    stage "test models exported anew" build/venv/bin/python -m tools.export --check
  fi
  if [[ $command == check ]]; then
    # The other presets join files, where a missing include does not show (docs/decisions/074).
    stage "build file by file" build_preset dev
  fi
  stage "operator of the documentation" sample_stage
  stage "build with ASan and UBSan" build_preset asan
  stage "unit tests under ASan and UBSan" ctest_stage asan --parallel "$(cores)"
  if [[ -n $(fuzz_sources) ]]; then
    stage "build fuzzers" build_preset fuzz -DCMAKE_CXX_COMPILER="$(env_get PTERO_FUZZ_CXX)"
    stage "fuzz, $fuzz_seconds s each" fuzz_stage "$fuzz_seconds"
  fi
  stage "format" format_check
  stage "shell scripts" build/venv-tools/bin/shellcheck -x dev .ci/run tools/dev/*.sh
  for check in tools/check_*.py; do
    stage "${check#tools/}" python3 "$check"
  done
  stage_table
}

# ctest_stage PRESET CTEST OPTIONS: no test at all is a failure.
ctest_stage() {
  local preset=$1
  shift
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error "$@"
}

# The adapter each program reports must be the one its entry is for.
gpu_stage() {
  local adapter=$1 status=0 junit=build/ci/gpu-$1.xml
  if [[ -z $(find src apps tests -name '*_gpu_test.cc') ]]; then
    say "There is no GPU test yet."
    return
  fi
  # Most of their time is the driver compiling kernels, on one core a program.
  ctest_stage ci -L "^$adapter\$" --parallel "$(cores)" --test-output-size-passed 65536 \
    --output-junit "$PWD/$junit" || status=1
  python3 tools/dev/gpu_report.py "$adapter" "$junit" || status=1
  return "$status"
}

cli_stage() {
  with_adapters build/venv-tools/bin/python -m pytest -q -n "$(cores)" tests/cli
}

python_stage() {
  local sysroot
  sysroot=$(env_get PTERO_SYSROOT)
  venv_setup build/venv tools/requirements-test.txt
  PATH=${sysroot:+$sysroot/tools:}$PATH with_adapters build/venv/bin/python -m pytest -q -n "$(cores)" tests/python
}

fuzz_sources() { find src -name '*_fuzz.cc' | sort; }

# Inputs that once failed live beside the fuzzer in <name>_corpus; new ones stay in build/.
fuzz_stage() {
  local seconds=$1 source name corpus status=0
  for source in $(fuzz_sources); do
    name=$(basename "$source" .cc)
    corpus=("build/fuzz/corpus/$name")
    mkdir -p "${corpus[0]}" build/fuzz/crashes
    [[ -d ${source%.cc}_corpus ]] && corpus+=("${source%.cc}_corpus")
    say "-- $name"
    "build/fuzz/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="build/fuzz/crashes/$name-" "${corpus[@]}" >"build/fuzz/$name.log" 2>&1 || {
      tail -n 60 "build/fuzz/$name.log"
      status=1
    }
    grep -E 'number_of_executed_units' "build/fuzz/$name.log" || status=1
  done
  return "$status"
}
