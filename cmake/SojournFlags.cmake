# SPDX-License-Identifier: Apache-2.0
#
# The compile and link flags of Sojourn, in three parts: what every program needs so that its stacks
# can move (sojourn_runtime_flags), the warnings of our own sources (sojourn_warnings), and the
# sanitizers (SOJOURN_SANITIZE, for the whole build).

find_package(Threads REQUIRED)

# What SOJOURN_STATIC adds to a link. Functions are found in the unwinder's table, which the compiler
# asks the linker for only in dynamic links.
set(SOJOURN_STATIC_LINK_OPTIONS -static "LINKER:--eh-frame-hdr")
if(SOJOURN_STATIC AND SOJOURN_SANITIZE)
  message(FATAL_ERROR "SOJOURN_STATIC and SOJOURN_SANITIZE exclude each other: the address sanitizer "
                      "works in dynamically linked programs only; switch one of them off.")
endif()

# sojourn_runtime_flags(target [NO_CHECKED]): the flags that `target` and whoever links it must be
# built with. NO_CHECKED leaves checked mode out, as SOJOURN_NO_CHECKED does for the whole build.
function(sojourn_runtime_flags target)
  cmake_parse_arguments(PARSE_ARGV 1 flags "NO_CHECKED" "" "")
  # Stack clash protection: a frame larger than the guard page touches it instead of jumping over it
  # into the neighbouring stack.
  set(compile -fno-pie -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    # No red zone: a call may be pushed onto a suspended fiber's stack. No CET: a shadow stack cannot
    # follow frames that are cut from a stack.
    list(APPEND compile -mno-red-zone -fcf-protection=none)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    # No signed return addresses: the keys differ between processes. No branch targets: the switch of
    # stacks returns by jumps. The stack guard is a global that differs between processes too.
    list(APPEND compile -mbranch-protection=none -fno-stack-protector)
  else()
    message(FATAL_ERROR "Sojourn runs on x86-64 and aarch64, not on ${CMAKE_SYSTEM_PROCESSOR}.")
  endif()
  target_compile_options(${target} PUBLIC ${compile})
  target_compile_features(${target} PUBLIC cxx_std_20)
  if(SOJOURN_NO_CHECKED OR flags_NO_CHECKED)
    target_compile_definitions(${target} PUBLIC SOJOURN_NO_CHECKED=1)
  else()
    if(SOJOURN_CHECKED)
      target_compile_definitions(${target} PUBLIC SOJOURN_CHECKED_DEFAULT=1)
    endif()
    # Checked mode names a mutex that is held where a fiber waits.
    target_link_options(
      ${target} PUBLIC
      "LINKER:--wrap=pthread_mutex_lock,--wrap=pthread_mutex_trylock,--wrap=pthread_mutex_unlock"
      "LINKER:--wrap=pthread_rwlock_rdlock,--wrap=pthread_rwlock_tryrdlock,--wrap=pthread_rwlock_unlock"
      "LINKER:--wrap=pthread_rwlock_wrlock,--wrap=pthread_rwlock_trywrlock"
      "LINKER:-u,__wrap_pthread_mutex_lock")
  endif()

  # -no-pie and the static C++ runtime give code, vtables and globals one address in all ranks. The
  # wrapped guards let the migration gate see a function-local static that is being initialised, and fibers
  # wait for each other there and in std::call_once; -u pulls the wrappers in even when only the C++ runtime
  # refers to them, after our archive was read. pthread_exit() names who called it. -z now:
  # bound at its first call, a function has the dynamic linker save all vector registers on the fiber's
  # stack, and with them dead words that look like pointers. The record of exceptions in flight belongs to a
  # fiber; exported, it is the one that libraries with a C++ runtime of their own use too.
  target_link_options(
    ${target}
    PUBLIC
    -no-pie
    -static-libgcc
    -static-libstdc++
    "LINKER:--wrap=__cxa_guard_acquire,--wrap=__cxa_guard_release,--wrap=__cxa_guard_abort,--wrap=pthread_exit"
    "LINKER:-u,__wrap___cxa_guard_acquire"
    "LINKER:--export-dynamic-symbol=__cxa_get_globals,--export-dynamic-symbol=__cxa_get_globals_fast"
    "LINKER:--build-id"
    "LINKER:-z,now")
  if(SOJOURN_STATIC)
    target_link_options(${target} PUBLIC ${SOJOURN_STATIC_LINK_OPTIONS})
  endif()
  # Again behind the libraries, where it prevails over the -pie that CMake puts at the end of the options
  # for projects with CMAKE_POSITION_INDEPENDENT_CODE that call check_pie_supported().
  target_link_libraries(${target} PUBLIC Threads::Threads -no-pie)
endfunction()

# sojourn_warnings(target): the warnings for our own C++ sources; they never reach users.
function(sojourn_warnings target)
  set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
  if(SOJOURN_PRECOMPILE)
    # Of the standard library's own strings, which gcc 12 warns of once their headers are precompiled.
    list(APPEND warnings -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict)
  endif()
  if(SOJOURN_WERROR)
    list(APPEND warnings -Werror)
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")
endfunction()

if(SOJOURN_SANITIZE)
  set(sanitize -fsanitize=address,undefined)
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:CXX>:${sanitize};-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  add_link_options(${sanitize})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # gcc's shared libubsan would bring libstdc++.so in beside the static C++ runtime. Its static form
    # is read after libstdc++.a, so what it needs from there is asked for beforehand.
    add_link_options(
      -static-libasan -static-libubsan
      "LINKER:-u,__dynamic_cast,-u,_ZTIN10__cxxabiv121__vmi_class_type_infoE")
  endif()
endif()
