# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# ./dev setup --sysroot: forky's packages with all they need, unpacked under build/sysroot. The
# host's compiler builds against them; the programs run through the sysroot's own loader
# (cmake/PteroSysroot.cmake), so the host's C library may be older. Nothing outside build/ changes
# and no root is needed.

sysroot_setup() {
  local level=$1 mirror form root=$PWD/build/sysroot work=$PWD/build/setup/sysroot packages
  packages=("${forky_packages_build[@]}" patchelf)
  if [[ $level == test ]]; then
    packages+=("${forky_packages_test[@]}" "${sysroot_packages_test[@]}")
  fi
  sysroot_check_host
  mirror=$(debian_mirror)
  [[ -n $mirror ]] || die 4 "No http(s) Debian mirror is in this machine's apt sources;" \
    "give one with --mirror URL."
  say "Unpacking Debian packages under build/sysroot; nothing outside build/ changes:"
  say "  ${packages[*]}"
  form=$(private_apt_update "$work" empty "$mirror")
  if [[ $form == relaxed ]]; then
    warn_expired "$mirror"
  fi
  private_apt "$work" empty apt-get -q -y --download-only install "${packages[@]}" \
    </dev/null >"$work/download.log" 2>&1 || {
    cat "$work/update.log" "$work/download.log" >&2
    die 1 "apt cannot fetch the packages; its messages are above."
  }
  rm -rf "$root" "$root.new"
  sysroot_unpack "$root.new" "$work"
  mv "$root.new" "$root"
  sysroot_patch "$root"
  sysroot_dot "$root"
}

sysroot_check_host() {
  local tool missing=()
  for tool in apt-get dpkg-deb cmake ninja python3; do
    have "$tool" || missing+=("$tool")
  done
  have "${CXX:-c++}" || missing+=("g++ 12 or later")
  [[ -e $debian_keyring ]] || missing+=("$debian_keyring (package debian-archive-keyring)")
  ((${#missing[@]})) || return 0
  printf 'dev: missing: %s\n' "${missing[@]}" >&2
  die 4 "--sysroot needs these on the machine itself; on Debian and Ubuntu:" \
    "apt-get install g++ cmake ninja-build python3-venv debian-archive-keyring"
}

sysroot_unpack() {
  local root=$1 work=$2 deb name link target folder
  # Debian's merged /usr: libraries in /lib and /usr/lib are the same.
  mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
  for folder in bin sbin lib lib64; do
    ln -s "usr/$folder" "$root/$folder"
  done
  : >"$root/packages.txt"
  for deb in "$work"/cache/archives/*.deb; do
    name=$(basename "$deb")
    printf '%s\n' "${name%.deb}" >>"$root/packages.txt"
    name=${name%%_*}
    [[ $name =~ $sysroot_leaves_out ]] ||
      dpkg-deb --fsys-tarfile "$deb" |
      tar -xv --keep-directory-symlink --no-same-owner -C "$root" | sed "s/^/$name /" >>"$root/files.txt"
  done
  # Absolute links would point at the host.
  while IFS= read -r link; do
    target=$(readlink "$link")
    if [[ -e $root$target || -L $root$target ]]; then
      ln -sfnr "$root$target" "$link"
    fi
  done < <(find "$root" -type l -lname '/*')
}

# Gives programs of the sysroot its loader and libraries, and the driver file its place.
sysroot_patch() {
  local root=$1 libs loader program library icd
  libs=$(sysroot_library_path "$root")
  loader=$(sysroot_loader "$root")
  local patchelf=("$loader" --library-path "$libs" "$root/usr/bin/patchelf")
  for program in flatc tint dot ../lib/llvm-21/bin/clang; do
    program=$root/usr/bin/$program
    [[ -e $program ]] || continue
    "${patchelf[@]}" --set-interpreter "$loader" --force-rpath --set-rpath "$libs" "$program"
  done
  # A library with a RUNPATH of its own (LLVM's) would not be served by the program's RPATH, and
  # lavapipe must also load into a program of ./dev package, which has none.
  while IFS= read -r library; do
    if [[ $library == */libvulkan_lvp.so || -n $("${patchelf[@]}" --print-rpath "$library" 2>/dev/null) ]]; then
      "${patchelf[@]}" --force-rpath --set-rpath "$libs" "$library"
    fi
  done < <(find "$root/usr/lib" -type f -name '*.so*' -not -name '*.py' -not -name 'ld-linux*')
  for icd in "$root"/usr/share/vulkan/icd.d/lvp_icd*.json; do
    python3 - "$icd" "$root" <<'PY'
import glob, json, sys
path, root = sys.argv[1:]
with open(path) as file:
    icd = json.load(file)
(library,) = glob.glob(f"{root}/usr/lib/*/libvulkan_lvp.so")
icd["ICD"]["library_path"] = library
with open(path, "w") as file:
    json.dump(icd, file, indent=4)
PY
  done
}

# Graphviz knows its plugins by a file that installing its package makes. Those that need fonts stay
# out: the host may have none, and an SVG draws its text where it is looked at. The widths of letters are
# guessed then, of which -q does not tell each time. $root/tools is for PATH.
sysroot_dot() {
  local root=$1 plugins
  [[ -e $root/usr/bin/dot ]] || return 0
  plugins=$(echo "$root"/usr/lib/*/graphviz)
  find "$plugins" -name 'libgvplugin_*' ! -name 'libgvplugin_core*' ! -name 'libgvplugin_dot*' -delete
  GVBINDIR=$plugins "$root/usr/bin/dot" -c || die 1 "The dot of build/sysroot does not run."
  mkdir -p "$root/tools"
  printf '#!/bin/sh\nGVBINDIR="%s" exec "%s" -q "$@"\n' "$plugins" "$root/usr/bin/dot" >"$root/tools/dot"
  chmod +x "$root/tools/dot"
}

sysroot_loader() {
  local loader
  for loader in "$1"/usr/lib/*/ld-linux-*.so.*; do
    printf '%s\n' "$loader"
    return
  done
}

sysroot_library_path() {
  local folder=("$1"/usr/lib/*-linux-gnu)
  printf '%s:%s\n' "${folder[0]}" "$1/usr/lib"
}
