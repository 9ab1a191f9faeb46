// SPDX-License-Identifier: Apache-2.0
// Locks that the language takes: of a function-local static while it is initialised, and of a
// std::once_flag while its function runs. Fibers of a rank are one thread for the C++ runtime,
// which would stop it for ever when a second fiber comes while the first one waits. Here the second
// fiber waits as for any other object of its rank: the linker's --wrap brings the compiler's calls
// here, and our pthread_once takes the place of the C library's. A migration in the middle is
// refused (running.static_inits): what is locked would stay so for ever on the rank that the frames
// leave.
#pragma once

#include "sojourn/detail/waiters.hpp"

namespace sojourn::detail {

/// The piece with the frames for whose initialisation the queue waits; null for a queue of another
/// kind.
const piece* initialiser_of(const waiters* queue);

/// Of what `older` initialises, the frames younger than the cut take theirs along, to `younger`;
/// returns how many these are.
unsigned divide_initialisations(const piece* older, const piece* younger);

}  // namespace sojourn::detail
