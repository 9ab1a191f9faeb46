// SPDX-License-Identifier: Apache-2.0
// Messages about copies of objects and about objects that move.
#pragma once

#include <cstddef>

namespace sojourn::detail {

/// An object that has grown where it is may still be so long when it goes home.
inline constexpr std::size_t longest_object_message = 4u << 20;

/// Registers their handlers.
void attach_object_messages();

}  // namespace sojourn::detail
