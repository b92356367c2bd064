# SPDX-License-Identifier: BSD-3-Clause
# Kernels live beside the code that dispatches them. At build time tools/embed_wgsl.py turns each
# src/<path>.wgsl into <build>/generated/<path>.wgsl.h; nothing generated is committed.

# ptero_embed_wgsl(<target>): every *.wgsl below the current folder, except include-only *_part.wgsl.
# <target> and what links it may then include "<path>.wgsl.h", and "<layer>/all_kernels.h" with
# all of them but those of tests, wgsl::kAllKernels.
function(ptero_embed_wgsl target)
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.wgsl")
  list(FILTER kernels EXCLUDE REGEX "_part\\.wgsl$")
  set(generator "${PROJECT_SOURCE_DIR}/tools/embed_wgsl.py")
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME layer)
  set(list_includes "")
  set(list_items "")
  foreach(kernel IN LISTS kernels)
    # The stem names the kernel everywhere (C++ constant, GPU label, profiler row).
    cmake_path(GET kernel STEM LAST_ONLY stem)
    if(DEFINED owner_${stem})
      message(FATAL_ERROR "Kernel name ${stem} is used twice:\n  ${owner_${stem}}\n  ${kernel}")
    endif()
    set(owner_${stem} "${kernel}")

    cmake_path(RELATIVE_PATH kernel BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/src"
               OUTPUT_VARIABLE path)
    set(header "${PROJECT_BINARY_DIR}/generated/${path}.h")
    add_custom_command(
      OUTPUT "${header}"
      COMMAND "${Python3_EXECUTABLE}" "${generator}" --root "${PROJECT_SOURCE_DIR}/src"
              --out "${header}" --depfile "${header}.d" "${path}"
      DEPENDS "${kernel}" "${generator}" "${PROJECT_SOURCE_DIR}/tools/wgsl_kernel.py"
      DEPFILE "${header}.d"
      COMMENT "Embedding ${path}"
      VERBATIM)
    target_sources(${target} PRIVATE "${header}")
    if(NOT path MATCHES "/testing/")
      string(REPLACE "_" ";" words "${stem}")
      set(name "k")
      foreach(word IN LISTS words)
        string(SUBSTRING "${word}" 0 1 first)
        string(SUBSTRING "${word}" 1 -1 rest)
        string(TOUPPER "${first}" first)
        string(APPEND name "${first}${rest}")
      endforeach()
      string(APPEND list_includes "#include \"${path}.h\"\n")
      string(APPEND list_items "    &${name},\n")
    endif()
  endforeach()
  if(list_items)
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/${layer}/all_kernels.h" @ONLY CONTENT
"// Generated from the kernels below src/@layer@.
#pragma once

@list_includes@
namespace ptero::@layer@::wgsl {

inline constexpr const gpu::KernelSource* kAllKernels[] = {
@list_items@};

}  // namespace ptero::@layer@::wgsl
")
  endif()
  target_include_directories(${target} PUBLIC "${PROJECT_BINARY_DIR}/generated")
endfunction()
