# SPDX-License-Identifier: Apache-2.0
#
# Precompiled headers: two thirds of the time that a source takes go into headers that all others
# read too. Only gcc's builds have them: clang's see to it that each source includes what it uses, and its
# precompiled headers hold the folder they were made in, so that no cache of objects serves another clone.

set(default OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_CROSSCOMPILING)
  set(default ON)
endif()
option(SOJOURN_PRECOMPILE "Precompile the headers that most sources include" ${default})

# For src/ and its unit tests.
set(SOJOURN_PRECOMPILED_STANDARD
    <algorithm> <array> <atomic> <cstring> <exception> <functional> <map> <memory> <optional> <span>
    <string> <tuple> <unordered_map> <variant> <vector>)

# sojourn_precompiled_library(target): a library whose sources are those of src/.
function(sojourn_precompiled_library target)
  if(SOJOURN_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${SOJOURN_PRECOMPILED_STANDARD})
  endif()
endfunction()

# sojourn_precompiled(target [DEBUGGED] [libraries…]): the headers of those libraries, of
# sojourn::sojourn if none is named, are precompiled once for all targets that name the same ones.
# Called behind sojourn_warnings, for targets with no other options but -g (DEBUGGED). A source with
# options or definitions of its own says SKIP_PRECOMPILE_HEADERS.
function(sojourn_precompiled target)
  if(NOT SOJOURN_PRECOMPILE)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "DEBUGGED" "" "")
  set(libraries ${arg_UNPARSED_ARGUMENTS})
  if(NOT libraries)
    set(libraries sojourn::sojourn)
  endif()
  set(headers <sojourn/sojourn.hpp>)
  if("sojourn_program" IN_LIST libraries)
    list(APPEND headers <fmt/format.h> <compiled_json.hpp>)
  endif()
  if("GTest::gtest_main" IN_LIST libraries)
    # Tests of src/ have names of their own that sojourn.hpp has too.
    set(headers ${SOJOURN_PRECOMPILED_STANDARD} <gtest/gtest.h>)
  endif()
  string(MAKE_C_IDENTIFIER "precompiled_${libraries}" base)
  if(arg_DEBUGGED)
    string(APPEND base _debugged)
  endif()
  if(NOT TARGET ${base})
    set(source "${PROJECT_BINARY_DIR}/generated/${base}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "// Its headers are compiled before it.\n")
    add_library(${base} OBJECT "${source}")
    target_link_libraries(${base} PRIVATE ${libraries})
    sojourn_warnings(${base})
    if(arg_DEBUGGED)
      target_compile_options(${base} PRIVATE -g)
    endif()
    target_precompile_headers(${base} PRIVATE ${headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${base})
endfunction()
