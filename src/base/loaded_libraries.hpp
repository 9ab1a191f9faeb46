// SPDX-License-Identifier: Apache-2.0
// What the dynamic linker has done for this program, and libraries that it loads when they are
// needed.
#pragma once

#include <string>

namespace sojourn::detail {

/// A statically linked program has no dynamic linker, and loads no libraries.
bool is_linked_statically();

/// A library that a program uses where it is installed, and is not linked to. It stays loaded. A
/// statically linked program has none: it may have dlopen, when other parts of the C library bring
/// it in, but what it opens then loads a second C library, and crashes.
class optional_library {
 public:
  /// Its functions are seen by this program alone, or by what the library loads itself, too.
  enum class seen_by { this_program, its_plugins };
  explicit optional_library(const char* name, seen_by whom = seen_by::this_program);

  explicit operator bool() const { return handle_ != nullptr; }
  /// Why it is not there: for people.
  const std::string& why_not() const { return why_not_; }

  /// False when it has no function of that name.
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

/// The address that libraries use which need the function `name`, whether they are loaded already
/// or later; null when there is none. Null in a statically linked program.
void* address_for_libraries(const char* name);

/// Whether a library is loaded that defines the function `name` itself, at another address than
/// `ours`. False in a statically linked program.
bool library_has_its_own(const char* name, const void* ours);

}  // namespace sojourn::detail
