# SPDX-License-Identifier: Apache-2.0
#
# sojourn_add_parmacs_program(name sources… [OPTIONS options…]): the executable `name` from C sources
# that are written to the macros of ANL and PARMACS (docs/parmacs.md). m4 expands them and the headers
# that they include. OPTIONS are the C compiler's: -O2 -Iinclude -DSIZE=4. Libraries are added as to
# any other target, by target_link_libraries.
#
# Part of the package, and of the build tree.
function(sojourn_add_parmacs_program name)
  cmake_parse_arguments(PARSE_ARGV 1 program "" "" "OPTIONS")
  if(NOT program_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sojourn_add_parmacs_program(${name}) needs the sources of the program")
  endif()
  set(sources "")
  set(depends "")
  foreach(source IN LISTS program_UNPARSED_ARGUMENTS)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND sources "${source}")
    # Headers may be made by m4, so no compiler lists them.
    cmake_path(GET source PARENT_PATH folder)
    file(GLOB headers CONFIGURE_DEPENDS "${folder}/*.H" "${folder}/*.h" "${folder}/*.h.in" "${folder}/*.m4")
    list(APPEND depends "${source}" ${headers})
  endforeach()
  list(REMOVE_DUPLICATES depends)
  if(NOT program_OPTIONS)
    set(program_OPTIONS -O2)
  endif()
  if(TARGET sojourn_command)
    set(command "$<TARGET_FILE:sojourn_command>")
    list(APPEND depends sojourn_command "${PROJECT_SOURCE_DIR}/share/parmacs.m4"
         "${PROJECT_SOURCE_DIR}/include/sojourn_shared.h")
  else()
    set(command "$<TARGET_FILE:sojourn::command>")
  endif()
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${name}.parmacs.o")
  add_custom_command(
    OUTPUT "${object}"
    COMMAND "${command}" cc -r ${program_OPTIONS} ${sources} -o "${object}"
    DEPENDS ${depends}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    COMMENT "Expanding and compiling ${name}"
    VERBATIM)
  add_executable(${name} "${object}")
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX POSITION_INDEPENDENT_CODE OFF)
  # As in `sojourn cc`: pointers into the C library then mean the same in all processes.
  target_link_options(${name} PRIVATE "LINKER:--wrap=main,--wrap=dlopen" -static
                      "LINKER:--eh-frame-hdr")
  target_link_libraries(${name} PRIVATE sojourn::sojourn m)
endfunction()
