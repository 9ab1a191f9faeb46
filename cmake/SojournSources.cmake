# SPDX-License-Identifier: Apache-2.0
#
# Finds sources by where they stand. New files need no list: the globs are checked at each build.

# sojourn_library_sources(out): all of src/ but the tests, and the assembly of this architecture.
# Assembly is named for its architecture: switch_x86_64.S, switch_aarch64.S.
function(sojourn_library_sources out)
  set(root "${PROJECT_SOURCE_DIR}/src")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${root}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    file(GLOB_RECURSE assembly CONFIGURE_DEPENDS "${root}/*_aarch64.S")
  else()
    file(GLOB_RECURSE assembly CONFIGURE_DEPENDS "${root}/*_x86_64.S")
  endif()
  list(APPEND sources ${assembly})
  if(NOT sources)
    # A library needs one source; this keeps a tree without src/ configurable.
    set(empty "${PROJECT_BINARY_DIR}/generated/empty.cpp")
    file(CONFIGURE OUTPUT "${empty}" CONTENT "\n")
    set(sources "${empty}")
  endif()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# sojourn_program_sources(out folder): the folder's own *.cpp, without tests, not below it.
function(sojourn_program_sources out folder)
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  set(${out} ${sources} PARENT_SCOPE)
endfunction()
