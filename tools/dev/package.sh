# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# ./dev package: a folder with the program, libptero for other programs, their libraries, the C library and its loader, that runs
# on another Linux machine with that machine's GPU driver (docs/decisions/004-package.md).

# These follow the C library: used together or not at all (tools/package/run).
package_glibc_names='^(ld-linux-.*|lib(c|m|dl|pthread|rt|util|resolv|mvec|stdc\+\+|gcc_s|atomic))\.so\.[0-9.]+$'

cmd_package() {
  local version name folder
  ensure_setup "$([[ $opt_with_tests == yes ]] && echo test || echo build)"
  build_preset release || die 1 "The build fails; its messages are above."
  [[ -x build/release/ptero ]] || die 1 "The build left no build/release/ptero."
  version=$(sed -n 's/^project(ptero VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  name=ptero-$version-linux-$(uname -m)
  folder=build/package/$name
  rm -rf "$folder" "$folder.tar.xz"
  mkdir -p "$folder"/{bin,include,lib/glibc,licences,share/ptero}
  cp build/release/ptero "$folder/bin/"
  cp -P build/release/libptero.so* "$folder/lib/"
  cp apps/c_api/ptero.h "$folder/include/"
  cp apps/c_api/example/answer.c "$folder/share/ptero/"
  cp tools/package/ptero "$folder/ptero"
  cp tools/package/run "$folder/lib/run"
  cp LICENSE THIRD_PARTY_NOTICES.md "$folder/licences/"
  if [[ $opt_with_tests == yes ]]; then
    build_preset ci || die 1 "The build of the tests fails; its messages are above."
    find build/ci -name '*_gpu_test' -type f -perm -u+x -exec cp -t "$folder/bin" {} +
    compgen -G "$folder/bin/*_gpu_test" >/dev/null || die 1 "The build left no GPU test."
    cp tools/package/selfcheck "$folder/selfcheck"
  fi
  package_libraries "$folder"
  package_check "$folder"
  tar -C build/package --owner=0 --group=0 -cf - "$name" | xz -T0 >"$folder.tar.xz"
  say "$folder ($(du -sh "$folder" | cut -f1)) and $name.tar.xz ($(du -h "$folder.tar.xz" | cut -f1)) are ready."
}

# The root that the libraries come from: '' for this machine.
package_root() { env_get PTERO_SYSROOT; }

package_libraries() {
  local folder=$1 root libs loader program path name patchelf=()
  root=$(package_root)
  if [[ -n $root ]]; then
    libs=$(sysroot_library_path "$root")
    loader=$(sysroot_loader "$root")
    patchelf=("$loader" --library-path "$libs" "$root/usr/bin/patchelf")
  else
    loader=$(package_interpreter build/release/ptero)
    libs=$(dirname "$(readlink -f "$loader")")
  fi
  package_copy "$loader" "$folder"
  # What Dawn loads at run time, and what GPU drivers built for older C libraries ask for.
  for name in libvulkan.so.1 libdl.so.2 libpthread.so.0 librt.so.1 libresolv.so.2 libutil.so.1; do
    package_copy "${libs%%:*}/$name" "$folder"
  done
  for program in "$folder"/bin/* "$folder/lib/libptero.so" "${libs%%:*}/libvulkan.so.1"; do
    while read -r path; do
      package_copy "$path" "$folder"
    done < <("$loader" --library-path "$libs" --list "$program" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p')
  done
  for program in "$folder"/bin/*; do
    strip --strip-debug "$program"
    if [[ -n $root ]]; then
      "${patchelf[@]}" --remove-rpath --set-interpreter "$(package_interpreter "$(command -v sh)")" \
        "$program"
    fi
  done
  strip --strip-debug "$(readlink -f "$folder/lib/libptero.so")"
  if [[ -n $root ]]; then
    # shellcheck disable=SC2016  # for the loader, not for the shell
    "${patchelf[@]}" --set-rpath '$ORIGIN' "$(readlink -f "$folder/lib/libptero.so")"
  fi
  "$loader" --version | sed -n '1s/.* \([0-9][0-9.]*[0-9]\)\.\{0,1\}$/\1/p' >"$folder/lib/glibc/version"
  [[ -s $folder/lib/glibc/version ]] || die 1 "The version of $loader is not recognised."
}

package_interpreter() { readelf -l "$1" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p'; }

# package_copy LIBRARY FOLDER: with the licence of the Debian package it comes from.
package_copy() {
  local library=$1 folder=$2 name target package root
  name=$(basename "$library")
  target=$folder/lib
  if [[ $name =~ $package_glibc_names ]]; then
    target=$folder/lib/glibc
  fi
  [[ ! -e $target/$name ]] || return 0
  cp -L "$library" "$target/$name"
  root=$(package_root)
  if [[ -n $root ]]; then
    package=$(awk -v file="$(basename "$(readlink -f "$library")")" \
      'index($2, "/" file) && substr($2, length($2) - length(file)) == "/" file { print $1; exit }' \
      "$root/files.txt")
  else
    package=$(dpkg -S "$(readlink -f "$library")" 2>/dev/null | head -n 1 | cut -d: -f1) || true
  fi
  [[ -n $package && -e $root/usr/share/doc/$package/copyright ]] ||
    die 1 "The licence of $library is not found (package '$package')."
  cp -L "$root/usr/share/doc/$package/copyright" "$folder/licences/$package.txt"
}

# Runs the result with nothing of this machine's environment and looks where libraries come from.
package_check() {
  local folder=$PWD/$1 program loader outside link driver
  driver=$(env_get PTERO_LAVAPIPE_ICD)
  loader=$(echo "$folder"/lib/glibc/ld-linux-*.so.*)
  for program in "$folder"/bin/* "$folder"/lib/lib{ptero.so,vulkan.so.1}; do
    outside=$("$loader" --inhibit-cache --library-path "$folder/lib:$folder/lib/glibc" \
      --list "$program" | grep -vF -e "$folder/" -e linux-vdso) || true
    [[ -z $outside ]] || die 1 "$(basename "$program") needs libraries from outside the package: $outside"
  done
  link=$(mktemp -d)
  ln -s "$folder/ptero" "$link/ptero"
  (cd / && env -i PTERO_OWN_LIBC=yes "$link/ptero" --version) ||
    die 1 "The packaged program does not run with an empty environment."
  (cd "$link" && env -i VK_DRIVER_FILES="$driver" PTERO_OWN_LIBC=yes \
    ./ptero selfcheck >"$link/log" 2>&1) || {
    cat "$link/log" >&2
    die 1 "The packaged program's self-check fails."
  }
  # A program elsewhere, built with the package's header and library alone.
  cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$folder/include" "$folder/share/ptero/answer.c" \
    -L"$folder/lib" -Wl,--allow-shlib-undefined -lptero -o "$link/answer" ||
    die 1 "A C program cannot be built with the package."
  (cd "$link" && env -i VK_DRIVER_FILES="$driver" PTERO_OWN_LIBC=yes "$folder/lib/run" \
    ./answer no.pte x >log 2>&1) && die 1 "A C program with the package misses no file."
  grep -q 'no.pte cannot be opened' "$link/log" || {
    cat "$link/log" >&2
    die 1 "A C program does not run with the package."
  }
  rm -r "$link"
  say "The package runs with an empty environment; all libraries but the GPU driver are inside."
}
