# SPDX-License-Identifier: BSD-3-Clause
# With PTERO_SYSROOT (./dev setup --sysroot) libraries and headers come from a folder of unpacked
# Debian packages that are newer than the machine. The machine's compiler and linker are used as
# they are, against its own C and C++ libraries; at run time the sysroot's loader brings the newer
# ones, which are compatible in that direction.
if(NOT PTERO_SYSROOT)
  return()
endif()
file(GLOB ptero_loader "${PTERO_SYSROOT}/usr/lib/*-linux-gnu/ld-linux-*.so.*")
list(LENGTH ptero_loader ptero_loader_count)
if(NOT ptero_loader_count EQUAL 1)
  message(FATAL_ERROR "PTERO_SYSROOT (${PTERO_SYSROOT}) holds ${ptero_loader_count} dynamic loaders "
                      "where one is needed. Make it with ./dev setup --sysroot.")
endif()
get_filename_component(ptero_sysroot_libs "${ptero_loader}" DIRECTORY)
list(PREPEND CMAKE_PREFIX_PATH "${PTERO_SYSROOT}/usr")
if(NOT CMAKE_LIBRARY_ARCHITECTURE)  # not a Debian host: look in lib/<triplet> all the same
  get_filename_component(CMAKE_LIBRARY_ARCHITECTURE "${ptero_sysroot_libs}" NAME)
endif()
# Some packages' CMake files name /usr itself.
include_directories(SYSTEM "${PTERO_SYSROOT}/usr/include")
# DT_RPATH, not DT_RUNPATH: it also serves libraries that libraries load, such as Vulkan drivers.
add_link_options(
  "LINKER:--dynamic-linker=${ptero_loader}"
  "LINKER:--disable-new-dtags"
  "LINKER:-rpath,${ptero_sysroot_libs}:${PTERO_SYSROOT}/usr/lib"
  "LINKER:--allow-shlib-undefined")
if(PTERO_BUILD_FUZZERS)
  # libFuzzer comes from the sysroot as a static library and asks for the newer C library at link
  # time already.
  link_libraries("${ptero_sysroot_libs}/libc.so.6" "${ptero_sysroot_libs}/libm.so.6"
                 "${ptero_sysroot_libs}/libstdc++.so.6")
endif()
