# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Set-up in two levels (build, test) and three ways: packages of this Debian machine, the same
# packages unpacked under build/sysroot, or whatever CMake finds. A stamp keyed by a hash of
# everything that decides the result makes the second run instant.

cmd_setup() {
  rm -f build/setup/*.stamp
  ensure_setup test
  say "Set-up is complete ($setup_mode)."
}

# ensure_setup build|test
ensure_setup() {
  local level=$1 key stamp
  setup_mode=${opt_mode:-$(env_get PTERO_SETUP_MODE)}
  setup_mode=${setup_mode:-system}
  key=$(setup_key)
  stamp=build/setup/$level.stamp
  if [[ $(cat "$stamp" 2>/dev/null) == "$key" ]] && env_files_exist; then
    return
  fi
  mkdir -p build/setup
  if [[ $setup_mode == sysroot ]]; then
    sysroot_setup "$level"
  else
    system_setup "$level"
  fi
  if [[ $level == test ]]; then
    swiftshader_setup
    venv_setup build/venv-tools tools/requirements-tools.txt
  fi
  env_write
  printf '%s\n' "$key" >"$stamp"
  if [[ $level == test ]]; then
    printf '%s\n' "$key" >build/setup/build.stamp
  fi
}

setup_key() {
  {
    printf '%s\n' "$setup_mode" "$PWD" "$(uname -srm)" "${CMAKE_PREFIX_PATH:-}"
    cat tools/dev/{packages,setup,debian,apt,sysroot,swiftshader,env,venv}.sh
    cat tools/requirements-tools.txt
  } | hash_of
}

system_setup() {
  local level=$1 packages=("${host_packages_build[@]}" "${forky_packages_build[@]}")
  if [[ $level == test ]]; then
    packages+=("${host_packages_test[@]}" "${forky_packages_test[@]}")
  fi
  if debian_has_all "${packages[@]}"; then
    return
  fi
  if debian_can_install; then
    debian_install "$level"
  else
    found_setup "$level"
  fi
}

# Any other machine: go on if the tools and a usable Dawn are there, else say what to install.
found_setup() {
  local level=$1 missing=() tool probe
  for tool in cmake ninja python3; do
    have "$tool" || missing+=("$tool")
  done
  have "${CXX:-c++}" || missing+=("a C++20 compiler (g++ 12 or clang 16 and later)")
  if have cmake && have ninja; then
    probe=$(cmake -S tools/dev/probe -B build/setup/probe -G Ninja --fresh 2>&1) || true
    while read -r tool; do
      missing+=("$tool")
    done < <(sed -n 's/^-- missing: //p' <<<"$probe")
    grep -q '^-- probe: done' <<<"$probe" || missing+=("a CMake probe that runs: see below")
  fi
  if ((${#missing[@]} == 0)); then
    say "Using the compiler, Dawn and libraries that CMake finds on this machine."
    return
  fi
  printf 'dev: missing: %s\n' "${missing[@]}" >&2
  if [[ ${probe:-} == *"CMake Error"* ]]; then
    printf '%s\n' "$probe" >&2
  fi
  install_advice "$level" >&2
  die 4 "Set-up stops here; run the same command again once these are installed."
}

install_advice() {
  local level=$1 wanted="${host_packages_build[*]} ${forky_packages_build[*]}"
  if [[ $level == test ]]; then
    wanted="$wanted ${host_packages_test[*]} ${forky_packages_test[*]}"
  fi
  say ''
  if debian_release >/dev/null; then
    say "On this Debian machine, either run it as root:"
    say "    sudo ./dev setup"
    say "or keep everything under build/ (needs only g++, cmake, ninja-build, python3-venv):"
    say "    ./dev setup --sysroot"
    return
  fi
  if have apt-get; then
    say "With apt: sudo apt-get install g++ cmake ninja-build python3-venv libfmt-dev \\"
    say "    nlohmann-json3-dev libcli11-dev libflatbuffers-dev flatbuffers-compiler doctest-dev \\"
    say "    libpcre2-dev libutf8proc-dev libblake3-dev mesa-vulkan-drivers libvulkan1"
    say "and, for Dawn, either a Dawn release (below) or the Debian packages under build/:"
    say "    ./dev setup --sysroot --mirror <address of a Debian mirror>"
  elif have dnf; then
    say "With dnf: sudo dnf install gcc-c++ cmake ninja-build python3 fmt-devel json-devel \\"
    say "    cli11-devel flatbuffers-devel flatbuffers-compiler doctest-devel pcre2-devel \\"
    say "    utf8proc-devel blake3-devel mesa-vulkan-drivers vulkan-loader"
  elif have brew; then
    say "With Homebrew: brew install cmake ninja python fmt nlohmann-json cli11 flatbuffers doctest pcre2 utf8proc blake3"
  else
    say "Install, under the names your system has for them:"
    say "    $wanted"
  fi
  say "Dawn: unpack a Dawn release (it has a CMake package) anywhere and name the folder:"
  say "    export CMAKE_PREFIX_PATH=<folder>"
}
