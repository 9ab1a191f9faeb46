// SPDX-License-Identifier: Apache-2.0
// Locks that the language takes: of a function-local static while it is initialised, and of a
// std::once_flag while its function runs. Fibers of a rank are one thread for the C++ runtime,
// which would stop it for ever when a second fiber comes while the first one waits. Here the second
// fiber waits as for any other object of its rank: the linker's --wrap brings the compiler's calls
// here, and our pthread_once takes the place of the C library's. A migration in the middle is
// refused (running.static_inits): what is locked would stay so for ever on the rank that the frames
// leave.
#pragma once

#include <cstdint>

#include "sojourn/detail/waiters.hpp"

namespace sojourn::detail {

/// An address in the frames of the fiber for whose initialisation the queue waits; 0 for a queue of
/// another kind.
std::uint64_t frame_of_holder(const waiters* queue);

}  // namespace sojourn::detail
