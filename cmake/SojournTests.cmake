# SPDX-License-Identifier: Apache-2.0
#
# Tests of four kinds, all run by ctest:
#   unit    src/FLOOR/**/x_test.cpp, GoogleTest, one executable unit_FLOOR
#   job     a program started as `sojourn run -n N`, each with SOJOURN_SHARE=on and =off
#   compile a source that must be refused with one readable line
#   source  properties of the tree: no include points up a floor
# The label `quick` marks a subset that takes seconds: all but the jobs of more than two ranks. What is
# labelled `long`, more than 5 s each, only ./dev soak runs, and so what is labelled `benchmarks`, which needs
# the target `benchmarks`. Of a test that says DRAW, `./dev test` runs a part; ./dev soak runs all.

# Here, not in the function that needs it first: what it defines is for other folders' calls too.
include(GoogleTest)

set(SOJOURN_TEST_RANKS_MAX 512 CACHE STRING "Job tests of more ranks than this are left out")
set(SOJOURN_TEST_PROGRAM_OPTIONS "" CACHE STRING "Options of the programs of job tests, without SOJOURN_PRECOMPILE")
option(SOJOURN_TEST_FULL "Random tests at full count, and what takes longest to compile: ./dev soak" OFF)
set(SOJOURN_TEST_TIMEOUT_SCALE 3 CACHE STRING "Multiplies the time limit of each job test")

# One environment for all tests: ASan may not keep its own copies of frames, for they would not
# travel with the stack; what a job leaves behind at exit is the kernel's to free.
set(SOJOURN_TEST_ENVIRONMENT "")
if(SOJOURN_SANITIZE)
  set(SOJOURN_TEST_ENVIRONMENT "ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0")
endif()
# Under an emulator the launcher is emulated, and each rank that it starts is a process in an emulator
# of its own. That keeps books of every page which is reserved: 10 TiB of them take minutes. Jobs that
# use much of their region say so with SOJOURN_TEST_LARGE_REGION.
set(SOJOURN_TEST_EMULATOR "")
set(SOJOURN_TEST_SMALL_REGION "")
set(SOJOURN_TEST_LARGE_REGION "")
if(CMAKE_CROSSCOMPILING)
  set(SOJOURN_TEST_EMULATOR ${CMAKE_CROSSCOMPILING_EMULATOR})
  set(SOJOURN_TEST_SMALL_REGION SOJOURN_REGION_GIB=4)
  set(SOJOURN_TEST_LARGE_REGION SOJOURN_REGION_GIB=16)
endif()

# sojourn_job_test(NAME name (SOURCES a.cpp… | PROGRAM target) [RANKS 1 2 4 8] [ARGS …] [LIBS …]
#                  [SHARE on off] [ENVIRONMENT K=V…] [LABELS …] [EXPECT regex] [STATUS n] [TIMEOUT seconds]
#                  [OPTIONS …] [DRAW n])
#
# Builds SOURCES as the program job_NAME (or takes an executable target that exists) and runs
# `sojourn run -n N OPTIONS program ARGS` for each N of RANKS and each value of SOJOURN_SHARE. A test passes
# when the job's exit status is 0 or, with EXPECT, when it is that of STATUS (0; 0|139 is either) and the
# job's output matches the regular expression.
# Tests are named NAME.nN.share_on. PROGRAM allows several calls, with other ARGS or ENVIRONMENT
# (SOJOURN_VIA=…), to share one executable. DRAW: of all its combinations of ranks and SHARE `./dev test`
# runs n, which the seed of the tests draws.
function(sojourn_job_test)
  cmake_parse_arguments(
    PARSE_ARGV 0 job "" "NAME;PROGRAM;TIMEOUT;EXPECT;STATUS;DRAW" "SOURCES;RANKS;ARGS;LIBS;SHARE;ENVIRONMENT;LABELS;OPTIONS")
  if(job_UNPARSED_ARGUMENTS OR NOT job_NAME OR (NOT job_SOURCES AND NOT job_PROGRAM))
    message(FATAL_ERROR "sojourn_job_test needs NAME and SOURCES or PROGRAM: ${ARGV}")
  endif()
  if(NOT job_RANKS)
    set(job_RANKS 1 2 4 8)
  endif()
  if(NOT DEFINED job_SHARE)
    set(job_SHARE on off)
  endif()
  if(NOT job_TIMEOUT)
    set(job_TIMEOUT 60)
  endif()
  math(EXPR timeout "${job_TIMEOUT} * ${SOJOURN_TEST_TIMEOUT_SCALE}")
  if(job_EXPECT AND NOT job_STATUS)
    set(job_STATUS 0)
  elseif(job_STATUS AND NOT job_EXPECT)
    message(FATAL_ERROR "sojourn_job_test: STATUS needs EXPECT, the words that tell of the failure: ${ARGV}")
  endif()

  if(job_SOURCES)
    set(job_PROGRAM job_${job_NAME})
    add_executable(${job_PROGRAM} ${job_SOURCES})
    set_target_properties(${job_PROGRAM} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                    "${CMAKE_BINARY_DIR}/bin/tests")
    target_include_directories(${job_PROGRAM} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}"
                                                      "${PROJECT_SOURCE_DIR}/tests")
    target_link_libraries(${job_PROGRAM} PRIVATE sojourn::sojourn ${job_LIBS})
    sojourn_warnings(${job_PROGRAM})
    target_compile_options(${job_PROGRAM} PRIVATE ${SOJOURN_TEST_PROGRAM_OPTIONS})
    if(NOT job_SOURCES MATCHES "\\.c$")
      sojourn_precompiled(${job_PROGRAM})
    endif()
  endif()

  list(LENGTH job_RANKS combinations)
  list(LENGTH job_SHARE shares)
  math(EXPR combinations "${combinations} * ${shares}")
  set(combination -1)
  foreach(ranks IN LISTS job_RANKS)
    foreach(share IN LISTS job_SHARE)
      math(EXPR combination "${combination} + 1")
      if(ranks GREATER SOJOURN_TEST_RANKS_MAX)
        continue()
      endif()
      set(test ${job_NAME}.n${ranks}.share_${share})
      set(command $<TARGET_FILE:sojourn_command> run -n ${ranks} ${job_OPTIONS} ${SOJOURN_TEST_EMULATOR}
                  $<TARGET_FILE:${job_PROGRAM}> ${job_ARGS})
      if(job_EXPECT)
        # Not in the list: a bracket of a regular expression would keep what follows together.
        add_test(NAME ${test}
                 COMMAND "${CMAKE_COMMAND}" "-DSTATUS=${job_STATUS}" "-DEXPECT=${job_EXPECT}" -P
                         "${PROJECT_SOURCE_DIR}/cmake/ExpectOutput.cmake" -- ${command})
      else()
        add_test(NAME ${test} COMMAND ${command})
      endif()
      set(labels job ${job_LABELS})
      if(ranks LESS_EQUAL 2)
        list(APPEND labels quick)
      endif()
      if(job_DRAW)
        sojourn_draw(undrawn ${job_NAME} ${combination} ${combinations} ${job_DRAW})
        list(APPEND labels ${undrawn})
      endif()
      # Beside each other, jobs of more ranks than cores take turns, and each turn is late: of such two
      # run at once, of others four. What has many ranks begins first, so that nothing waits for it at
      # the end.
      set(slots 1)
      if(ranks GREATER 2)
        set(slots 2)
      endif()
      set_tests_properties(
        ${test}
        PROPERTIES TIMEOUT ${timeout}
                   PROCESSORS ${slots}
                   COST ${ranks}
                   LABELS "${labels}"
                   ENVIRONMENT
                   "SOJOURN_SHARE=${share};${SOJOURN_TEST_SMALL_REGION};${job_ENVIRONMENT};${SOJOURN_TEST_ENVIRONMENT}")
    endforeach()
  endforeach()
endfunction()

# sojourn_draw(out name i n drawn): the labels not_in_draw_K of the i-th of n combinations of a test.
# `./dev test` leaves out those of one K, which follows from the seed. Each draw has `drawn` of the n, and
# draws that follow each other have others, so that all draws together have each.
set(SOJOURN_DRAWS 8) # as in ./dev
function(sojourn_draw out name i n drawn)
  string(MD5 hash "${name}")
  string(SUBSTRING "${hash}" 0 6 hash)
  # Without a common divisor with n: neighbours, which are much alike, are not drawn together.
  set(step 5)
  math(EXPR rest "${n} % 5")
  if(rest EQUAL 0)
    set(step 3)
  endif()
  set(labels "")
  math(EXPR last "${SOJOURN_DRAWS} - 1")
  foreach(draw RANGE ${last})
    math(EXPR place "(0x${hash} + ${step} * ${i} + ${draw} * ${drawn}) % ${n}")
    if(place GREATER_EQUAL drawn)
      list(APPEND labels not_in_draw_${draw})
    endif()
  endforeach()
  set(${out} ${labels} PARENT_SCOPE)
endfunction()

# sojourn_compile_fail_test(NAME name SOURCE f.cpp EXPECT regex)
#
# Compiles the source with the flags of a Sojourn program when ctest runs, and expects an error
# whose line matches the regular expression. The macro SOJOURN_EXPECT_ERROR is defined for it; when
# the source mentions that macro it must also compile without it, so that the error seen is the one
# meant.
# Sanitizers change nothing about it, so with them there are none.
function(sojourn_compile_fail_test)
  if(SOJOURN_SANITIZE)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 0 fail "" "NAME;SOURCE;EXPECT" "")
  if(fail_UNPARSED_ARGUMENTS OR NOT fail_NAME OR NOT fail_SOURCE OR NOT fail_EXPECT)
    message(FATAL_ERROR "sojourn_compile_fail_test needs NAME, SOURCE and EXPECT: ${ARGV}")
  endif()
  cmake_path(ABSOLUTE_PATH fail_SOURCE BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  set(options "$<JOIN:$<TARGET_PROPERTY:sojourn,INTERFACE_COMPILE_OPTIONS>,|>")
  set(header "${PROJECT_BINARY_DIR}/generated/compile_fail.hpp")
  set(precompiled precompiled_sojourn__sojourn)
  set(fixture FIXTURES_REQUIRED compile_fail_header)
  if(TARGET ${precompiled})
    # The build has it precompiled, with these options.
    string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
    string(REPLACE " " "|" options_of_type "${CMAKE_CXX_FLAGS_${type}}")
    string(PREPEND options "${options_of_type}|")
    get_target_property(folder ${precompiled} BINARY_DIR)
    set(header "${folder}/CMakeFiles/${precompiled}.dir/cmake_pch.hxx")
    set(fixture "")
  endif()
  set(command "${CMAKE_COMMAND}" "-DCOMPILER=${CMAKE_CXX_COMPILER}"
              "-DINCLUDES=$<JOIN:$<TARGET_PROPERTY:sojourn,INTERFACE_INCLUDE_DIRECTORIES>,|>"
              "-DOPTIONS=${options}" "-DHEADER=${header}")
  set(script -P "${PROJECT_SOURCE_DIR}/cmake/CompileFail.cmake")
  get_property(has_header GLOBAL PROPERTY SOJOURN_COMPILE_FAIL_HEADER)
  if(fixture AND NOT has_header)
    set_property(GLOBAL PROPERTY SOJOURN_COMPILE_FAIL_HEADER ON)
    add_test(NAME compile_fail.header COMMAND ${command} ${script})
    set_tests_properties(compile_fail.header PROPERTIES LABELS "compile;quick" TIMEOUT 300
                                                        FIXTURES_SETUP compile_fail_header)
  endif()
  # The seed draws half of them.
  sojourn_draw(undrawn compile_fail.${fail_NAME} 0 2 1)
  add_test(NAME compile_fail.${fail_NAME} COMMAND ${command} "-DSOURCE=${fail_SOURCE}"
                                                  "-DEXPECT=${fail_EXPECT}" ${script})
  set_tests_properties(
    compile_fail.${fail_NAME} PROPERTIES LABELS "compile;quick;${undrawn}" TIMEOUT 300 ${fixture})
endfunction()

# sojourn_unit_test(target sources… [LIBS …]): one GoogleTest executable; ctest sees each TEST.
function(sojourn_unit_test target)
  cmake_parse_arguments(PARSE_ARGV 1 unit "" "" "SOURCES;LIBS;INCLUDES")
  add_executable(${target} ${unit_SOURCES})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                             "${CMAKE_BINARY_DIR}/bin/tests")
  target_include_directories(${target} PRIVATE ${unit_INCLUDES} "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${target} PRIVATE ${unit_LIBS} sojourn::sojourn GTest::gtest_main)
  sojourn_warnings(${target})
  sojourn_precompiled(${target} sojourn::sojourn GTest::gtest_main)
  set(environment "")
  if(SOJOURN_TEST_ENVIRONMENT)
    set(environment ENVIRONMENT "${SOJOURN_TEST_ENVIRONMENT}")
  endif()
  # Listed when ctest starts, not when the program is built: a crash then fails a test, not the build.
  gtest_discover_tests(
    ${target}
    TEST_PREFIX ${target}.
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS quick TIMEOUT 300 ${environment})
endfunction()

# Finds the unit tests: unit_FLOOR from src/FLOOR, unit_app_NAME from apps/NAME, unit_tools.
function(sojourn_add_unit_tests)
  if(CMAKE_CROSSCOMPILING)
    # The package googletest has the sources; no package has the library for two machines at once.
    set(BUILD_GMOCK OFF)
    set(INSTALL_GTEST OFF)
    add_subdirectory(/usr/src/googletest "${PROJECT_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)
  else()
    find_package(GTest CONFIG REQUIRED)
  endif()
  file(GLOB floors CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE "${PROJECT_SOURCE_DIR}/src"
       "${PROJECT_SOURCE_DIR}/src/*")
  foreach(floor IN LISTS floors)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${floor}/*_test.cpp")
    if(sources)
      sojourn_unit_test(unit_${floor} SOURCES ${sources} INCLUDES "${PROJECT_SOURCE_DIR}/src")
    endif()
  endforeach()

  # In release the sources have -g1, which knows no variables.
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/frames/debug_info_test.cpp"
                              PROPERTIES COMPILE_OPTIONS -g SKIP_PRECOMPILE_HEADERS ON)

  get_property(app_libraries GLOBAL PROPERTY SOJOURN_APP_LIBRARIES)
  foreach(library IN LISTS app_libraries)
    string(REPLACE "app_" "" name ${library})
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/apps/${name}/*_test.cpp")
    if(sources)
      sojourn_unit_test(unit_${library} SOURCES ${sources} LIBS ${library})
    endif()
  endforeach()

  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/*_test.cpp")
  if(sources)
    sojourn_unit_test(unit_tools SOURCES ${sources} LIBS command_parts)
  endif()
endfunction()

# The target check_headers, which ./dev lint builds, compiles each header alone: a source per header
# that includes it, twice.
# Public headers see include/ only. Headers of src/ with a source beside them are left out: that
# source includes them first (scripts/check_floors.sh sees to it).
function(sojourn_add_header_check)
  file(GLOB_RECURSE public CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/*.hpp")
  file(GLOB_RECURSE private CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*.hpp")
  add_custom_target(check_headers)
  foreach(kind IN ITEMS public private)
    set(sources "")
    foreach(header IN LISTS ${kind})
      cmake_path(REMOVE_EXTENSION header LAST_ONLY OUTPUT_VARIABLE stem)
      if(kind STREQUAL "private" AND EXISTS "${stem}.cpp")
        continue()
      endif()
      cmake_path(RELATIVE_PATH stem BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
      set(source "${PROJECT_BINARY_DIR}/generated/check_headers/${stem}.cpp")
      file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
      list(APPEND sources "${source}")
    endforeach()
    if(sources)
      add_library(check_headers_${kind} OBJECT EXCLUDE_FROM_ALL ${sources})
      target_link_libraries(check_headers_${kind} PRIVATE sojourn::sojourn)
      target_compile_options(check_headers_${kind} PRIVATE -O0 -g0)
      sojourn_warnings(check_headers_${kind})
      if(kind STREQUAL "private")
        target_include_directories(check_headers_${kind} PRIVATE "${PROJECT_SOURCE_DIR}/src")
      endif()
      add_dependencies(check_headers check_headers_${kind})
    endif()
  endforeach()
endfunction()

# Tests of the tree itself.
function(sojourn_add_source_tests)
  add_test(NAME floors COMMAND sh "${PROJECT_SOURCE_DIR}/scripts/check_floors.sh" --print
                               "${PROJECT_SOURCE_DIR}")
  add_test(NAME floors.self_test COMMAND sh "${PROJECT_SOURCE_DIR}/scripts/check_floors_test.sh")
  add_test(NAME floors.calls COMMAND sh "${PROJECT_SOURCE_DIR}/scripts/check_calls.sh" "${PROJECT_BINARY_DIR}"
                                     "${PROJECT_SOURCE_DIR}")
  add_test(NAME floors.calls.self_test COMMAND sh "${PROJECT_SOURCE_DIR}/scripts/check_calls_test.sh")
  set_tests_properties(floors.calls floors.calls.self_test
                       PROPERTIES ENVIRONMENT "NM=${CMAKE_NM};CXX=${CMAKE_CXX_COMPILER}")
  add_test(NAME dev COMMAND sh "${PROJECT_SOURCE_DIR}/scripts/dev_test.sh")
  add_test(NAME expect_output COMMAND sh "${PROJECT_SOURCE_DIR}/scripts/expect_output_test.sh")
  set_tests_properties(floors floors.self_test floors.calls floors.calls.self_test dev expect_output
                       PROPERTIES LABELS "source;quick" TIMEOUT 60)
endfunction()
