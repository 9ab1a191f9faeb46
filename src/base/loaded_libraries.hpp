// SPDX-License-Identifier: Apache-2.0
// What the dynamic linker has done for this program.
#pragma once

namespace sojourn::detail {

/// A statically linked program has no dynamic linker, and loads no libraries.
bool is_linked_statically();

/// The address that libraries use which need the function `name`, whether they are loaded already
/// or later; null when there is none. Null in a statically linked program.
void* address_for_libraries(const char* name);

/// Whether a library is loaded that defines the function `name` itself, at another address than
/// `ours`. False in a statically linked program.
bool library_has_its_own(const char* name, const void* ours);

}  // namespace sojourn::detail
