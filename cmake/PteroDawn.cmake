# SPDX-License-Identifier: BSD-3-Clause
# Finds Dawn, the WebGPU implementation. Any Dawn with a CMake package will do: Debian's, Google's
# release archive, or your own build; CMAKE_PREFIX_PATH points at it.
find_package(Dawn QUIET CONFIG)
if(NOT Dawn_FOUND)
  message(FATAL_ERROR
    "Dawn is not found. Run ./dev setup, which installs it from Debian's packages "
    "(./dev setup --sysroot keeps them under build/), or unpack a Dawn release and pass "
    "-DCMAKE_PREFIX_PATH=<its folder>. To build the layers that need no GPU, pass "
    "-DPTERO_BUILD_GPU=OFF.")
endif()
if(NOT TARGET dawn::webgpu_dawn)
  message(FATAL_ERROR
    "The Dawn package in ${Dawn_DIR} has no target dawn::webgpu_dawn. Ptero needs a Dawn that "
    "installs its monolithic library; point CMAKE_PREFIX_PATH at one.")
endif()
message(STATUS "Dawn: ${Dawn_DIR}")
