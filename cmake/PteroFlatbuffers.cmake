# SPDX-License-Identifier: BSD-3-Clause
# Compiles schema/*.fbs into the build tree with flatc. FlatBuffers' readers, builders and verifier
# are header-only; no library is linked. Defines the interface target ptero_schema; include the
# results as "schema/<name>_generated.h".
find_program(PTERO_FLATC NAMES flatc REQUIRED NO_CMAKE_FIND_ROOT_PATH
             DOC "FlatBuffers compiler (a host program, also in cross builds)")
# A cross build may use the host's headers: they hold no platform code.
find_path(PTERO_FLATBUFFERS_INCLUDE_DIR NAMES flatbuffers/flatbuffers.h REQUIRED
          NO_CMAKE_FIND_ROOT_PATH DOC "Folder that holds flatbuffers/flatbuffers.h")

set(ptero_schema_dir "${PROJECT_BINARY_DIR}/generated/schema")
set(ptero_schema_headers "")
file(GLOB ptero_schema_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/schema/*.fbs")
foreach(schema IN LISTS ptero_schema_files)
  get_filename_component(name "${schema}" NAME_WE)
  set(header "${ptero_schema_dir}/${name}_generated.h")
  # Every schema may include scalar_type.fbs, so each depends on all of them.
  add_custom_command(
    OUTPUT "${header}"
    COMMAND "${PTERO_FLATC}" --cpp --cpp-std c++17 --scoped-enums -o "${ptero_schema_dir}" "${schema}"
    DEPENDS ${ptero_schema_files}
    COMMENT "Compiling schema/${name}.fbs"
    VERBATIM)
  list(APPEND ptero_schema_headers "${header}")
endforeach()
add_custom_target(ptero_schema_headers DEPENDS ${ptero_schema_headers})

add_library(ptero_schema INTERFACE)
add_dependencies(ptero_schema ptero_schema_headers)
target_include_directories(ptero_schema SYSTEM INTERFACE "${PROJECT_BINARY_DIR}/generated")
if(CMAKE_CROSSCOMPILING)
  # The host's include folder holds far more than FlatBuffers and would shadow the target's headers.
  file(COPY "${PTERO_FLATBUFFERS_INCLUDE_DIR}/flatbuffers"
       DESTINATION "${PROJECT_BINARY_DIR}/generated/host_headers")
  target_include_directories(ptero_schema SYSTEM INTERFACE
                             "${PROJECT_BINARY_DIR}/generated/host_headers")
elseif(NOT PTERO_FLATBUFFERS_INCLUDE_DIR STREQUAL "/usr/include")
  target_include_directories(ptero_schema SYSTEM INTERFACE "${PTERO_FLATBUFFERS_INCLUDE_DIR}")
endif()
