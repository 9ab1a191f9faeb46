# SPDX-License-Identifier: Apache-2.0
#
# The target program_libraries: what programs use of {fmt} and of nlohmann's JSON. Both are headers of
# which each source that includes them compiles all that it uses, for 10 s and more; libraries/ has
# them compiled once. It has none of Sojourn's flags, and so is for programs without Sojourn too.

function(sojourn_add_libraries)
  find_package(fmt CONFIG REQUIRED)
  find_package(nlohmann_json CONFIG REQUIRED)
  set(folder "${PROJECT_SOURCE_DIR}/libraries")
  add_library(program_libraries STATIC "${folder}/json.cpp")
  # Optimizing all of its members takes most of a minute, and nothing waits for them.
  set_source_files_properties("${folder}/json.cpp" PROPERTIES COMPILE_OPTIONS "-O0;-g0")
  target_include_directories(program_libraries PUBLIC "${folder}")
  target_link_libraries(program_libraries PUBLIC nlohmann_json::nlohmann_json)
  # Not the distribution's libfmt.so, which would bring libstdc++.so back in, beside the static C++
  # runtime that every Sojourn program is linked with.
  if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
    target_sources(program_libraries PRIVATE "${folder}/fmt.cpp")
    get_target_property(include fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
    target_include_directories(program_libraries SYSTEM PUBLIC ${include})
  else()
    message(STATUS "{fmt} ${fmt_VERSION} is used as headers only: libraries/fmt.cpp is for {fmt} 9")
    target_link_libraries(program_libraries PUBLIC fmt::fmt-header-only)
  endif()
endfunction()
