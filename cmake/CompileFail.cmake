# SPDX-License-Identifier: Apache-2.0
#
# Run by ctest (sojourn_compile_fail_test) as
#   cmake -DCOMPILER=… -DSOURCE=… -DEXPECT=regex -DINCLUDES=a|b -DOPTIONS=-x|-y -DHEADER=h -P CompileFail.cmake
#
# Without EXPECT it precompiles HEADER, which all sources then begin with: most of the time that
# each takes would go there.

string(REPLACE "|" ";-I" INCLUDES "-I${INCLUDES}")
string(REPLACE "|" ";" OPTIONS "${OPTIONS}")
set(FLAGS -std=c++20 ${INCLUDES} ${OPTIONS})

if(NOT EXPECT)
  file(WRITE "${HEADER}" "#include <sojourn/sojourn.hpp>\n")
  execute_process(COMMAND "${COMPILER}" ${FLAGS} -x c++-header "${HEADER}" -o "${HEADER}.gch"
                          COMMAND_ERROR_IS_FATAL ANY)
  return()
endif()
list(APPEND FLAGS -include "${HEADER}")

file(READ "${SOURCE}" text)
if(text MATCHES "SOJOURN_EXPECT_ERROR")
  execute_process(COMMAND "${COMPILER}" ${FLAGS} -fsyntax-only "${SOURCE}"
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${SOURCE} must compile without SOJOURN_EXPECT_ERROR, but:\n${output}")
  endif()
endif()

execute_process(COMMAND "${COMPILER}" ${FLAGS} -DSOJOURN_EXPECT_ERROR -fsyntax-only "${SOURCE}"
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiled, but an error matching '${EXPECT}' was expected.")
endif()
string(REGEX MATCH "[^\n]*error:[^\n]*(${EXPECT})[^\n]*" match "${output}")
if(match STREQUAL "")
  message(FATAL_ERROR "${SOURCE}: no error line matches '${EXPECT}'. The compiler said:\n${output}")
endif()
message(STATUS "refused as expected:\n${match}")
