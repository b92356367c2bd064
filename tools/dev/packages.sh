# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What the project needs, as Debian packages. Two levels: `build` is enough for the program,
# `test` adds what ./dev test runs. Host tools come from the machine's own suite, libraries from
# forky (docs/decisions/001-packages-from-forky.md).

host_packages_build=(g++ cmake ninja-build python3 python3-venv ca-certificates xz-utils)
host_packages_test=(ccache git graphviz)

forky_packages_build=(libwebgpu-dawn-dev libvulkan1 mesa-vulkan-drivers libfmt-dev
  nlohmann-json3-dev libcli11-dev libflatbuffers-dev flatbuffers-compiler
  libpcre2-dev libutf8proc-dev libblake3-dev)
forky_packages_test=(doctest-dev dawn-tools clang-21 libclang-rt-21-dev)

# Programs that tests run. A machine may lack them, so a sysroot has its own.
sysroot_packages_test=(graphviz)

# SwiftShader is one file of this package; nothing of it is installed.
swiftshader_package=chromium-common

# In a sysroot the compiler's own headers and libraries are the host's.
sysroot_leaves_out='^(libc6-dev|libc-dev-bin|linux-libc-dev|libcrypt-dev|libc6-i386|lib32.*|binutils.*|lib(stdc\+\+|gcc|objc)-[0-9]+-dev|rpcsvc-proto|libc6-dev-.*)$'
