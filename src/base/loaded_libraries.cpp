// SPDX-License-Identifier: Apache-2.0
#include "base/loaded_libraries.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>

// Weak: a strong reference makes the linker warn about every statically linked program.
#pragma weak dlopen
#pragma weak dlclose
#pragma weak dlerror
#pragma weak dlsym
// A statically linked program has no _DYNAMIC. (It may have dlsym, when other parts of the C
// library bring it in.)
#pragma weak _DYNAMIC

namespace sojourn::detail {

bool is_linked_statically() {
  // Volatile: compilers assume that no array, not even a weak one, lies at address 0.
  const void* volatile dynamic_section = &_DYNAMIC[0];
  return dynamic_section == nullptr;
}

void* address_for_libraries(const char* name) {
  if (is_linked_statically() || &dlsym == nullptr) return nullptr;
  return dlsym(RTLD_DEFAULT, name);
}

optional_library::optional_library(const char* name, seen_by whom) {
  if (is_linked_statically() || &dlopen == nullptr || &dlsym == nullptr) {
    why_not_ = "a statically linked program cannot load it";
    return;
  }
  handle_ = dlopen(name, RTLD_NOW | (whom == seen_by::its_plugins ? RTLD_GLOBAL : RTLD_LOCAL));
  if (handle_ != nullptr) return;
  // dlerror() tells each error only once, and returns null when there is none.
  const char* why = &dlerror == nullptr ? nullptr : dlerror();
  why_not_ = why == nullptr ? "the dynamic linker does not say why" : why;
}

void* optional_library::address_of(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

bool library_has_its_own(const char* name, const void* ours) {
  if (is_linked_statically() || &dlopen == nullptr || &dlsym == nullptr) return false;
  struct question {
    const char* name;
    const void* ours;
  } asked{name, ours};
  return dl_iterate_phdr(
             [](dl_phdr_info* loaded, std::size_t, void* context) {
               const auto& q = *static_cast<const question*>(context);
               if (loaded->dlpi_name == nullptr || *loaded->dlpi_name == '\0') return 0;
               // The library is loaded already; this call only gives a handle for dlsym().
               void* library = dlopen(loaded->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
               if (library == nullptr) return 0;
               const void* found = dlsym(library, q.name);
               dlclose(library);
               return found != nullptr && found != q.ours ? 1 : 0;
             },
             &asked) != 0;
}

}  // namespace sojourn::detail
