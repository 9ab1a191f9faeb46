// SPDX-License-Identifier: Apache-2.0
// What the dynamic linker has done for this program, and libraries that are loaded when they are
// needed.
#pragma once

#include <string>

namespace sojourn::detail {

/// A statically linked program has no dynamic linker, and loads no libraries.
bool is_linked_statically();

/// A library to which the program is not linked, but which it uses if it is installed. It stays
/// loaded. A statically linked program can use none: it may have dlopen, when other parts of the C
/// library bring it in, but a library that it opens loads a second C library, and crashes.
class optional_library {
 public:
  /// Who finds the library's functions: only this program, or also what the library loads itself.
  enum class seen_by { this_program, its_plugins };
  explicit optional_library(const char* name, seen_by whom = seen_by::this_program);

  explicit operator bool() const { return handle_ != nullptr; }
  /// Why the library cannot be used: for people.
  const std::string& why_not() const { return why_not_; }

  /// Returns false when the library has no function of that name.
  template <class Function>
  bool find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(address_of(name));
    return function != nullptr;
  }

 private:
  void* address_of(const char* name) const;

  void* handle_ = nullptr;
  std::string why_not_;
};

/// The address of the function `name` for libraries that need it, whether they are loaded already
/// or later. Null when there is none, and in a statically linked program.
void* address_for_libraries(const char* name);

/// True when a loaded library defines the function `name` itself, at another address than `ours`.
/// False in a statically linked program.
bool library_has_its_own(const char* name, const void* ours);

}  // namespace sojourn::detail
