# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# SwiftShader, the second software adapter of the tests: one library of Debian's chromium-common,
# kept in build/swiftshader. Only tests use it.

swiftshader_setup() {
  local folder=build/swiftshader work=$PWD/build/setup/swiftshader mirror form
  if [[ -e $folder/libvk_swiftshader.so && -e $folder/vk_swiftshader_icd.json ]]; then
    return
  fi
  if ! have apt-get || ! have dpkg-deb; then
    warn "SwiftShader comes from a Debian package, and this machine has no apt: its tests will fail" \
      "unless you put libvk_swiftshader.so and vk_swiftshader_icd.json into $folder."
    return
  fi
  mirror=$(debian_mirror)
  if [[ -z $mirror ]]; then
    warn "No Debian mirror is known (give one with --mirror URL), so SwiftShader's tests will fail."
    return
  fi
  say "Fetching SwiftShader from Debian's $swiftshader_package"
  rm -rf "$work"
  form=$(private_apt_update "$work" empty "$mirror")
  [[ $form == strict ]] || warn_expired "$mirror"
  (cd "$work/cache" && private_apt "$work" empty apt-get -q download "$swiftshader_package") \
    >"$work/download.log" 2>&1 || {
    cat "$work/update.log" "$work/download.log" >&2
    die 1 "apt cannot fetch $swiftshader_package; its messages are above."
  }
  dpkg-deb --fsys-tarfile "$work"/cache/"$swiftshader_package"_*.deb |
    tar -x -C "$work" --wildcards './usr/lib/chromium/*swiftshader*' \
      './usr/share/doc/*/copyright'
  mkdir -p "$folder.new"
  mv "$work"/usr/lib/chromium/* "$work/usr/share/doc/$swiftshader_package/copyright" "$folder.new/"
  rm -rf "$folder" "$work"
  mv "$folder.new" "$folder"
}
