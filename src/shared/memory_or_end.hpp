// SPDX-License-Identifier: Apache-2.0
// Memory of the runtime's for what happens in the middle of a protocol of shared memory, where
// nothing can be thrown, and nobody could catch it.
#pragma once

#include <memory_resource>

namespace sojourn::detail::pages {

/// Where the system has no more, the process ends with a sentence. Never destroyed.
std::pmr::memory_resource* memory_or_end();

}  // namespace sojourn::detail::pages
