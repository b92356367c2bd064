# SPDX-License-Identifier: BSD-3-Clause
# Compiler options shared by every target, carried by the interface target ptero_options.
add_library(ptero_options INTERFACE)
target_include_directories(ptero_options INTERFACE "${PROJECT_SOURCE_DIR}/src")
target_compile_definitions(ptero_options INTERFACE PTERO_VERSION="${PROJECT_VERSION}")

if(MSVC)
  target_compile_options(ptero_options INTERFACE /W4 /permissive- /utf-8)
  if(PTERO_WARNINGS_AS_ERRORS)
    target_compile_options(ptero_options INTERFACE /WX)
  endif()
else()
  target_compile_options(ptero_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow
                         -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
                         # {.a = 1} leaving the rest to the struct's defaults is what we mean.
                         -Wno-missing-field-initializers)
  if(PTERO_WARNINGS_AS_ERRORS)
    target_compile_options(ptero_options INTERFACE -Werror)
  endif()
  if(PTERO_SANITIZE)
    target_compile_options(ptero_options INTERFACE -fsanitize=${PTERO_SANITIZE}
                           -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(ptero_options INTERFACE -fsanitize=${PTERO_SANITIZE})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # GCC's own manual says that instrumented code makes this warning err.
      target_compile_options(ptero_options INTERFACE -Wno-maybe-uninitialized)
    endif()
  endif()
  if(PTERO_BUILD_FUZZERS)
    if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      message(FATAL_ERROR "PTERO_BUILD_FUZZERS needs clang for libFuzzer, but the compiler is "
                          "${CMAKE_CXX_COMPILER_ID} (${CMAKE_CXX_COMPILER}).")
    endif()
    target_compile_options(ptero_options INTERFACE -fsanitize=fuzzer-no-link)
  endif()
endif()
if(NOT PTERO_WARNINGS)
  # Some compilers warn about correct code where functions are inlined; the developers' presets tell.
  target_compile_options(ptero_options INTERFACE $<IF:$<CXX_COMPILER_ID:MSVC>,/w,-w>)
endif()
