# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# ./dev setup --sysroot: the packages of packages.sh unpacked under build/sysroot.

sysroot_setup() {
  die 4 "--sysroot does not work yet."
}
