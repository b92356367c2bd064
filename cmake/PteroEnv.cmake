# SPDX-License-Identifier: BSD-3-Clause
# What `./dev setup` found or fetched, from build/env.sh (KEY=VALUE lines). Cache entries given on
# the command line win; a later set-up replaces values that came from an earlier one.
set(ptero_env_file "${PROJECT_SOURCE_DIR}/build/env.sh")
if(EXISTS "${ptero_env_file}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${ptero_env_file}")
endif()
foreach(key IN ITEMS PTERO_SYSROOT PTERO_LAVAPIPE_ICD PTERO_SWIFTSHADER_ICD)
  set(from_setup "")
  if(EXISTS "${ptero_env_file}")
    file(STRINGS "${ptero_env_file}" lines REGEX "^${key}=")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^${key}=(.*)$" "\\1" from_setup "${line}")
      string(REGEX REPLACE "^'(.*)'$" "\\1" from_setup "${from_setup}")
    endforeach()
  endif()
  if(NOT DEFINED ${key} OR "${${key}}" STREQUAL "" OR
     "${${key}}" STREQUAL "${PTERO_SETUP_GAVE_${key}}")
    set(${key} "${from_setup}" CACHE STRING "From ./dev setup (build/env.sh)" FORCE)
    set(PTERO_SETUP_GAVE_${key} "${from_setup}" CACHE INTERNAL "")
  endif()
endforeach()

# Distributions whose Vulkan drivers are in the usual place need no set-up for lavapipe.
if(NOT PTERO_LAVAPIPE_ICD)
  foreach(name IN ITEMS lvp_icd.json lvp_icd.${CMAKE_SYSTEM_PROCESSOR}.json)
    if(NOT PTERO_LAVAPIPE_ICD AND EXISTS "/usr/share/vulkan/icd.d/${name}")
      set(PTERO_LAVAPIPE_ICD "/usr/share/vulkan/icd.d/${name}")
    endif()
  endforeach()
endif()
