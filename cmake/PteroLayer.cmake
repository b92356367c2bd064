# SPDX-License-Identifier: BSD-3-Clause
# One rule for every layer, so that adding a file edits no list:
#   *.cc            -> library ptero_<layer>
#   *_test.cc       -> program <layer>_test (no GPU; also built and run under sanitizers)
#   *_gpu_test.cc   -> program <layer>_gpu_test (needs an adapter; run once per test adapter)
#   *_fuzz.cc       -> program <name>_fuzz, one each, with PTERO_BUILD_FUZZERS (needs clang)
#   *.wgsl          -> generated header "<path>.wgsl.h" (PteroWgsl.cmake)
include(PteroWgsl)

# ptero_layer(<name> [DEPENDS <targets>] [EXCLUDE <regex>] [TEST_DEPENDS <targets>])
function(ptero_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXCLUDE" "DEPENDS;TEST_DEPENDS")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  if(arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${arg_EXCLUDE}")
  endif()
  set(gpu_tests ${sources})
  list(FILTER gpu_tests INCLUDE REGEX "_gpu_test\\.cc$")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER tests EXCLUDE REGEX "_gpu_test\\.cc$")
  set(fuzzers ${sources})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cc$")

  add_library(ptero_${name} STATIC ${sources})
  ptero_join_files(ptero_${name})
  target_link_libraries(ptero_${name} PUBLIC ptero_options ${PTERO_FMT} ${arg_DEPENDS})
  ptero_embed_wgsl(ptero_${name})
  if(PTERO_BUILD_FUZZERS)
    foreach(fuzzer IN LISTS fuzzers)
      get_filename_component(fuzzer_name "${fuzzer}" NAME_WE)
      ptero_fuzzer(${fuzzer_name} SOURCES ${fuzzer} DEPENDS ptero_${name})
    endforeach()
  endif()
  if(NOT PTERO_BUILD_TESTS)
    return()
  endif()
  if(tests)
    ptero_test(${name}_test SOURCES ${tests} DEPENDS ptero_${name} ${arg_TEST_DEPENDS})
  endif()
  if(gpu_tests AND PTERO_BUILD_GPU)
    ptero_gpu_test(${name}_gpu_test SOURCES ${gpu_tests}
                   DEPENDS ptero_${name} ptero_gpu_testing ${arg_TEST_DEPENDS})
  endif()
endfunction()

# ptero_join_files(<target>): with CMAKE_UNITY_BUILD, files of a folder are compiled as one, ten at
# most. Folders stay apart, so that an operator family shares no names with another
# (docs/decisions/074).
function(ptero_join_files target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(source MATCHES "\\.cc$")
      cmake_path(ABSOLUTE_PATH source)
      cmake_path(GET source PARENT_PATH folder)
      cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
      string(MAKE_C_IDENTIFIER "${folder}" name)
      list(APPEND folder_${name} "${source}")
      list(LENGTH folder_${name} count)
      math(EXPR number "(${count} - 1) / 10")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${name}_${number}")
    endif()
  endforeach()
endfunction()

# Tests of a folder may use the same names, so their files are never joined. What they test is
# optimised as ever, they themselves less or, instrumented, not at all (docs/decisions/074).
function(ptero_test_options name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  if(NOT MSVC)
    set(level -O1)
    if(PTERO_SANITIZE)
      set(level -O0)
    endif()
    target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:${level}>)
  endif()
endfunction()

function(ptero_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} ptero_doctest_main)
  ptero_test_options(${name})
  target_compile_definitions(${name} PRIVATE PTERO_TESTDATA="${PROJECT_SOURCE_DIR}/testdata")
  add_test(NAME ${name} COMMAND ${name} --no-version)
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 300)
endfunction()

# A libFuzzer program, left in the top of the build folder. PteroToolchain.cmake instruments the
# libraries; ./dev test runs it.
function(ptero_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  # Built even where its layer is only built for it.
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}"
                        EXCLUDE_FROM_ALL OFF)
endfunction()

function(ptero_gpu_test name)
  if(NOT PTERO_BUILD_TESTS OR NOT PTERO_BUILD_GPU)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;DEPENDS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} ptero_doctest_main)
  ptero_test_options(${name})
  target_compile_definitions(${name} PRIVATE PTERO_TESTDATA="${PROJECT_SOURCE_DIR}/testdata")
  ptero_run_on_adapters(${name} TIMEOUT "${arg_TIMEOUT}" ARGUMENTS --no-version)
endfunction()

# One program, one ctest entry per test adapter: <name>@lavapipe and <name>@swiftshader. The
# program learns which one it must be running on from PTERO_TEST_ADAPTER and has to fail when the
# adapter is another or none; an entry whose driver file is unknown fails too, it is never skipped.
function(ptero_run_on_adapters name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "ARGUMENTS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 1200)  # the largest takes more than ten minutes on two slow cores with nothing cached
  endif()
  set_property(GLOBAL APPEND PROPERTY PTERO_GPU_TESTS ${name})
  foreach(adapter IN ITEMS lavapipe swiftshader)
    string(TOUPPER "PTERO_${adapter}_ICD" icd)
    if(${icd} AND EXISTS "${${icd}}")
      add_test(NAME ${name}@${adapter} COMMAND ${name} ${arg_ARGUMENTS})
      set_property(TEST ${name}@${adapter} PROPERTY ENVIRONMENT
                   "VK_DRIVER_FILES=${${icd}}" "PTERO_TEST_ADAPTER=${adapter}")
    else()
      add_test(NAME ${name}@${adapter} COMMAND ${CMAKE_COMMAND}
        "-DMESSAGE=The test adapter ${adapter} has no Vulkan driver file (${icd} is '${${icd}}'). Run ./dev setup, or configure with -D${icd}=<file>."
        -P "${PROJECT_SOURCE_DIR}/cmake/PteroFailTest.cmake")
    endif()
    set_tests_properties(${name}@${adapter} PROPERTIES
                         LABELS "gpu;${adapter}" TIMEOUT ${arg_TIMEOUT})
  endforeach()
endfunction()
