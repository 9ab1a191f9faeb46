# SPDX-License-Identifier: Apache-2.0
#
# `cmake --install` and `cpack -G DEB`: headers, the library, the command, the benchmarks with their
# peers, the documents, and what others find Sojourn by: a CMake package and a pkg-config file. Both
# take their flags from the target `sojourn` (sojourn_runtime_flags), and neither holds the prefix,
# so an installed tree may be moved.

include(CMakePackageConfigHelpers)

# sojourn_pkg_config_flags(out property): a list property of `sojourn` as words of a command line.
function(sojourn_pkg_config_flags out property)
  get_target_property(values sojourn INTERFACE_${property})
  if(NOT values)
    set(values "")
  endif()
  if(property STREQUAL "COMPILE_DEFINITIONS")
    list(TRANSFORM values PREPEND "-D")
  endif()
  list(TRANSFORM values REPLACE "^LINKER:" "-Wl,")
  if(values MATCHES "\\$<")
    message(FATAL_ERROR "sojourn.pc cannot hold the generator expression in ${property}: ${values}")
  endif()
  list(JOIN values " " words)
  set(${out} "${words}" PARENT_SCOPE)
endfunction()

function(sojourn_add_install)
  if(SOJOURN_SANITIZE)
    # Programs would need the sanitizers' flags too, which the target does not carry.
    install(CODE [[message(FATAL_ERROR "A build with SOJOURN_SANITIZE is for Sojourn's own tests; install one of preset release.")]]
            COMPONENT sojourn)
    return()
  endif()
  set(libexec "${CMAKE_INSTALL_LIBEXECDIR}/sojourn")
  set(package "${CMAKE_INSTALL_LIBDIR}/cmake/sojourn")

  # The library and the command, as sojourn::sojourn and sojourn::command.
  set_target_properties(sojourn_command PROPERTIES EXPORT_NAME command)
  install(
    TARGETS sojourn sojourn_command
    EXPORT sojourn-targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT sojourn
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT sojourn
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(
    DIRECTORY "${PROJECT_SOURCE_DIR}/include/sojourn"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    COMPONENT sojourn
    FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
  install(FILES "${PROJECT_SOURCE_DIR}/include/sojourn_shared.h"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT sojourn)
  sojourn_install_cc_files()

  # The benchmarks find `sojourn` beside them, as in the build tree. Peers that need a library of
  # their own are apart, so that the package does not bring those in.
  get_property(targets DIRECTORY "${PROJECT_SOURCE_DIR}" PROPERTY BUILDSYSTEM_TARGETS)
  list(FILTER targets INCLUDE REGEX "^(bench_|peer_|(counting_network|btree|btree_unchecked|uts|phold|rmat|sor|em3d_flow|mdforce|hot_table|chains|counters|phases|graph_walk|hash_join)$|(em3d|water|fft|lu|gups|indexgather|kmers|nine)(_mpi)?$)")
  set(has_benchmarks FALSE)
  set(has_peers FALSE)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "EXECUTABLE" OR NOT SOJOURN_BUILD_BENCH)
      continue()
    endif()
    set(component sojourn)
    set(has_benchmarks TRUE)
    # What only the target `benchmarks` builds is installed if it is there.
    set(optional "")
    get_target_property(left_out ${target} EXCLUDE_FROM_ALL)
    if(left_out)
      set(optional OPTIONAL)
    endif()
    if(target MATCHES "^peer_(mpi|mpich|boost|ucx|grpc|capnp|tbb|openmp|argodsm)(_|$)|_mpi$")
      set(component peers)
      set(has_peers TRUE)
    endif()
    install(TARGETS ${target} RUNTIME DESTINATION "${libexec}" COMPONENT ${component} ${optional})
  endforeach()
  if(has_benchmarks)
    file(RELATIVE_PATH to_command "${CMAKE_INSTALL_FULL_LIBEXECDIR}/sojourn"
         "${CMAKE_INSTALL_FULL_BINDIR}/sojourn")
    set(link "${PROJECT_BINARY_DIR}/generated/libexec/sojourn")
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/generated/libexec")
    file(CREATE_LINK "${to_command}" "${link}" SYMBOLIC)
    install(FILES "${link}" DESTINATION "${libexec}" COMPONENT sojourn)
  endif()

  # The CMake package, and the same for a program that uses the build tree itself.
  configure_file("${PROJECT_SOURCE_DIR}/cmake/sojourn-config.cmake.in"
                 "${PROJECT_BINARY_DIR}/sojourn-config.cmake" @ONLY)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/SojournParmacs.cmake"
                 "${PROJECT_BINARY_DIR}/SojournParmacs.cmake" COPYONLY)
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/sojourn-config-version.cmake"
                                   COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/sojourn-config.cmake"
                "${PROJECT_BINARY_DIR}/sojourn-config-version.cmake"
                "${PROJECT_SOURCE_DIR}/cmake/SojournParmacs.cmake"
          DESTINATION "${package}" COMPONENT sojourn)
  install(EXPORT sojourn-targets NAMESPACE sojourn:: DESTINATION "${package}" COMPONENT sojourn)
  export(EXPORT sojourn-targets NAMESPACE sojourn::
         FILE "${PROJECT_BINARY_DIR}/sojourn-targets.cmake")

  # The pkg-config file.
  set(pc_folder "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig")
  file(RELATIVE_PATH SOJOURN_PC_PREFIX "${pc_folder}" "${CMAKE_INSTALL_PREFIX}")
  string(REGEX REPLACE "/$" "" SOJOURN_PC_PREFIX "${SOJOURN_PC_PREFIX}")
  file(RELATIVE_PATH SOJOURN_PC_INCLUDE "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
  file(RELATIVE_PATH SOJOURN_PC_LIB "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  sojourn_pkg_config_flags(SOJOURN_PC_DEFINITIONS COMPILE_DEFINITIONS)
  sojourn_pkg_config_flags(SOJOURN_PC_COMPILE COMPILE_OPTIONS)
  sojourn_pkg_config_flags(SOJOURN_PC_LINK LINK_OPTIONS)
  string(STRIP "${SOJOURN_PC_COMPILE} ${SOJOURN_PC_DEFINITIONS}" SOJOURN_PC_COMPILE)
  string(STRIP "${SOJOURN_PC_LINK} ${CMAKE_THREAD_LIBS_INIT}" SOJOURN_PC_LINK)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/sojourn.pc.in" "${PROJECT_BINARY_DIR}/sojourn.pc"
                 @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/sojourn.pc"
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT sojourn)

  # The documents, in the order of folders that their links expect.
  configure_file("${PROJECT_SOURCE_DIR}/tools/sojourn.1.in" "${PROJECT_BINARY_DIR}/sojourn.1" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/sojourn.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1"
          COMPONENT sojourn)
  foreach(document IN ITEMS README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE
                            cmake/copyright)
    install(FILES "${PROJECT_SOURCE_DIR}/${document}" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
            COMPONENT sojourn)
  endforeach()
  install(FILES "${PROJECT_SOURCE_DIR}/bench/README.md"
          DESTINATION "${CMAKE_INSTALL_DOCDIR}/bench" COMPONENT sojourn)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
          COMPONENT sojourn)

  sojourn_add_package(${has_peers})
endfunction()

# cpack: the package `sojourn`, and `sojourn-peers` with the programs on MPI, Boost, UCX, gRPC, Cap'n
# Proto, oneTBB and OpenMP that `sojourn bench` compares with. What the executables need is read from them; building programs needs a compiler besides.
function(sojourn_add_package has_peers)
  set(CPACK_PACKAGE_NAME sojourn)
  set(CPACK_PACKAGE_VENDOR "the Sojourn authors")
  set(CPACK_PACKAGE_CONTACT "the Sojourn authors")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "runtime for programs whose data is spread over processes")
  set(CPACK_GENERATOR DEB)
  set(CPACK_COMPONENTS_ALL sojourn)
  set(CPACK_STRIP_FILES OFF) # call sites are found by the names in the symbol table
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  else()
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
  endif()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_SOJOURN_PACKAGE_NAME sojourn)
  set(CPACK_DEBIAN_SOJOURN_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_SOJOURN_PACKAGE_RECOMMENDS
      "g++ (>= 4:12) | clang (>= 1:16), cmake (>= 3.25), make | ninja-build, pkgconf | pkg-config, m4")
  set(CPACK_DEBIAN_SOJOURN_PACKAGE_SUGGESTS "gdb, valgrind")
  set(CPACK_DEBIAN_SOJOURN_DESCRIPTION
      "Functions of a Sojourn program call the method of an object on another process, or move there \
with their stack frames and go on. This package holds the command, the library with its headers, \
the benchmarks and the documents.")
  if(has_peers)
    list(APPEND CPACK_COMPONENTS_ALL peers)
    string(APPEND CPACK_DEBIAN_SOJOURN_PACKAGE_SUGGESTS ", sojourn-peers")
    set(CPACK_DEBIAN_PEERS_PACKAGE_NAME sojourn-peers)
    set(CPACK_DEBIAN_PEERS_PACKAGE_SECTION devel)
    set(CPACK_DEBIAN_PEERS_PACKAGE_DEPENDS "sojourn (= ${PROJECT_VERSION})")
    if(TARGET peer_mpi_pingpong)
      string(APPEND CPACK_DEBIAN_PEERS_PACKAGE_DEPENDS ", openmpi-bin")
    endif()
    set(CPACK_DEBIAN_PEERS_DESCRIPTION
        "The programs on MPI, Boost, UCX, gRPC, Cap'n Proto, oneTBB and OpenMP that 'sojourn bench' compares Sojourn with.")
  endif()
  include(CPack)
endfunction()
