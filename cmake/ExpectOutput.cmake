# SPDX-License-Identifier: Apache-2.0
#
# Runs a command whose output must match a regular expression and which must exit with a status, or
# one of several (0|1):
#
#   cmake -DSTATUS=0 -DEXPECT=regex -P ExpectOutput.cmake -- command arguments…
#
# A property of ctest looks at the output alone, and so passes what prints the right words and then
# crashes.
set(command "")
set(found OFF)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(found)
    # In a list, which separates by semicolons.
    string(REPLACE ";" "\\;" word "${CMAKE_ARGV${i}}")
    list(APPEND command "${word}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(found ON)
  endif()
endforeach()
if(NOT command)
  message(FATAL_ERROR "there is no command behind --")
endif()

execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output
                ECHO_OUTPUT_VARIABLE ECHO_ERROR_VARIABLE)
# A signal's name stands in the place of a status when one ended the command.
if(NOT status MATCHES "^(${STATUS})$")
  message(FATAL_ERROR "the status is '${status}', and ${STATUS} was expected")
endif()
if(NOT output MATCHES "${EXPECT}")
  message(FATAL_ERROR "the output does not match '${EXPECT}'")
endif()
