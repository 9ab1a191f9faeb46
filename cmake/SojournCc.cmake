# SPDX-License-Identifier: Apache-2.0
#
# What `sojourn cc` finds beside the folder of the command, as share/sojourn: the macros, and cc.conf
# with the flags of the target `sojourn` and where the library is. The build tree has a copy with
# paths of its own.

# sojourn_write_cc_config(file include library)
function(sojourn_write_cc_config file include library)
  set(text "# What `sojourn cc` compiles and links with; paths as seen from this folder.\n")
  string(APPEND text "include ${include}\nlibrary ${library}\n")
  foreach(kind IN ITEMS compile link)
    string(TOUPPER "INTERFACE_${kind}_OPTIONS" property)
    get_target_property(flags sojourn ${property})
    foreach(flag IN LISTS flags)
      string(REGEX REPLACE "^LINKER:" "-Wl," flag "${flag}")
      string(APPEND text "${kind} ${flag}\n")
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT "${file}" CONTENT "${text}" @ONLY)
endfunction()

# Of the build tree.
function(sojourn_add_cc_files)
  set(share "${PROJECT_BINARY_DIR}/share/sojourn")
  sojourn_write_cc_config("${share}/cc.conf" "${PROJECT_SOURCE_DIR}/include"
                          "${PROJECT_BINARY_DIR}/libsojourn.a")
  configure_file("${PROJECT_SOURCE_DIR}/share/parmacs.m4" "${share}/parmacs.m4" COPYONLY)
endfunction()

# Of an installed tree, which may be moved.
function(sojourn_install_cc_files)
  set(share "${CMAKE_INSTALL_DATADIR}/sojourn")
  set(full "${CMAKE_INSTALL_FULL_DATADIR}/sojourn")
  file(RELATIVE_PATH include "${full}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
  file(RELATIVE_PATH library "${full}" "${CMAKE_INSTALL_FULL_LIBDIR}/libsojourn.a")
  set(config "${PROJECT_BINARY_DIR}/generated/share/cc.conf")
  sojourn_write_cc_config("${config}" "${include}" "${library}")
  install(FILES "${config}" "${PROJECT_SOURCE_DIR}/share/parmacs.m4" DESTINATION "${share}"
          COMPONENT sojourn)
endfunction()
