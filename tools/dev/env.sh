# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# build/env.sh is the one file that knows what set-up chose. Shell scripts source it, CMake reads
# its lines (cmake/PteroEnv.cmake).

env_file=build/env.sh

env_get() {
  if [[ -f $env_file ]]; then
    sed -n "s/^$1='\(.*\)'\$/\1/p" "$env_file"
  fi
}

env_files_exist() {
  local key file
  [[ -f $env_file ]] || return 1
  for key in PTERO_SYSROOT PTERO_LAVAPIPE_ICD PTERO_SWIFTSHADER_ICD PTERO_FUZZ_CXX; do
    file=$(env_get "$key")
    [[ -z $file || -e $file ]] || return 1
  done
}

env_write() {
  local sysroot='' lavapipe='' swiftshader='' fuzz_cxx='' file before
  if [[ $setup_mode == sysroot ]]; then
    sysroot=$PWD/build/sysroot
    lavapipe=$sysroot/usr/share/vulkan/icd.d/lvp_icd.json
    file=$sysroot/usr/lib/llvm-21/bin/clang++
    [[ -e $file ]] && fuzz_cxx=$file
  else
    for file in /usr/share/vulkan/icd.d/lvp_icd{,."$(uname -m)"}.json; do
      [[ -e $file ]] && lavapipe=$file
    done
    for file in clang++-21 clang++; do
      [[ -z $fuzz_cxx ]] && fuzz_cxx=$(command -v "$file" || true)
    done
  fi
  file=$PWD/build/swiftshader/vk_swiftshader_icd.json
  [[ -e $file ]] && swiftshader=$file
  before=$(env_get PTERO_SYSROOT)
  if [[ -f $env_file && $before != "$sysroot" ]]; then
    say "The libraries come from elsewhere now: build folders start anew."
    rm -f build/{release,dev,ci,asan,fuzz}/CMakeCache.txt
  fi
  cat >"$env_file.new" <<TEXT
PTERO_SETUP_MODE='$setup_mode'
PTERO_SYSROOT='$sysroot'
PTERO_LAVAPIPE_ICD='$lavapipe'
PTERO_SWIFTSHADER_ICD='$swiftshader'
PTERO_FUZZ_CXX='$fuzz_cxx'
TEXT
  if cmp -s "$env_file.new" "$env_file"; then
    rm "$env_file.new"
  else
    mv "$env_file.new" "$env_file"
  fi
}
