# SPDX-License-Identifier: BSD-3-Clause
# Finds Dawn, the WebGPU implementation, as target dawn::webgpu_dawn. Any Dawn with a CMake package
# will do: Debian's, Google's release archive, or your own build; CMAKE_PREFIX_PATH points at it.
# tools/dev/probe sets PTERO_DAWN_PROBE to ask only.
if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.28)
  find_package(Dawn QUIET CONFIG)
else()
  # Dawn's package exports a C++20 module, which an older CMake refuses to read, and Debian 12 has
  # CMake 3.25. The header and the library are all that is needed of it.
  find_path(PTERO_DAWN_INCLUDE webgpu/webgpu_cpp.h)
  find_library(PTERO_DAWN_LIBRARY webgpu_dawn)
  mark_as_advanced(PTERO_DAWN_INCLUDE PTERO_DAWN_LIBRARY)
  if(PTERO_DAWN_INCLUDE AND PTERO_DAWN_LIBRARY)
    set(Dawn_FOUND TRUE)
    set(Dawn_DIR "${PTERO_DAWN_LIBRARY}")
    if(NOT TARGET dawn::webgpu_dawn)
      find_package(Threads REQUIRED)
      add_library(dawn::webgpu_dawn UNKNOWN IMPORTED)
      set_target_properties(dawn::webgpu_dawn PROPERTIES
        IMPORTED_LOCATION "${PTERO_DAWN_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${PTERO_DAWN_INCLUDE}"
        INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
    endif()
  endif()
endif()

if(TARGET dawn::webgpu_dawn)
  message(STATUS "Dawn: ${Dawn_DIR}")
elseif(NOT PTERO_DAWN_PROBE)
  if(Dawn_FOUND)
    set(ptero_dawn_problem "The Dawn package in ${Dawn_DIR} has no target dawn::webgpu_dawn (its monolithic library).")
  else()
    set(ptero_dawn_problem "Dawn is not found.")
  endif()
  message(FATAL_ERROR
    "${ptero_dawn_problem} Run ./dev setup, which installs it from Debian's packages "
    "(./dev setup --sysroot keeps them under build/), or unpack a Dawn release and pass "
    "-DCMAKE_PREFIX_PATH=<its folder>. -DPTERO_BUILD_GPU=OFF builds the layers that need no GPU.")
endif()

# What `ptero --version` says. Dawn's package does not carry its version; Debian's does.
set(PTERO_DAWN_VERSION "" CACHE STRING "Version of Dawn, for ptero --version")
if(TARGET dawn::webgpu_dawn AND NOT PTERO_DAWN_VERSION)
  find_program(PTERO_DPKG_QUERY dpkg-query)
  mark_as_advanced(PTERO_DPKG_QUERY)
  set(PTERO_DAWN_VERSION "of unknown version")
  if(PTERO_DPKG_QUERY AND NOT PTERO_SYSROOT)
    execute_process(COMMAND "${PTERO_DPKG_QUERY}" --showformat=\${Version} --show libwebgpu-dawn-dev
                    OUTPUT_VARIABLE ptero_dawn_package ERROR_QUIET RESULT_VARIABLE ptero_dpkg_status)
    if(ptero_dpkg_status EQUAL 0)
      set(PTERO_DAWN_VERSION "${ptero_dawn_package}")
    endif()
  endif()
endif()
