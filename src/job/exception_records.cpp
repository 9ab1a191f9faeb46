// SPDX-License-Identifier: Apache-2.0
#include "job/exception_records.hpp"

#include <cxxabi.h>

#include "base/loaded_libraries.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

void refuse_second_exception_record() {
  constexpr const char* name = "__cxa_get_globals";
  const auto* ours = reinterpret_cast<const void*>(&abi::__cxa_get_globals);
  // Where the program exports its own, libraries that come later use it, too.
  if (address_for_libraries(name) == ours || !library_has_its_own(name, ours)) return;
  throw error(
      "this program has loaded a library with a C++ runtime of its own, and does not export "
      "__cxa_get_globals, so the library's exceptions would mix between fibers: link the program "
      "with the flags of the CMake target sojourn::sojourn, or of `pkg-config --libs sojourn`");
}

}  // namespace sojourn::detail
