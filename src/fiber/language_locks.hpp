// SPDX-License-Identifier: Apache-2.0
// Locks that the language takes: of a function-local static while it is initialised, and of a
// std::once_flag while its function runs. Fibers of a rank are one thread for the C++ runtime,
// which would stop it for ever when a second fiber comes while the first one waits. Here the second
// fiber waits as for any other object of its rank (language_calls.cpp). A migration in the middle
// is refused (running.static_inits): what is locked would stay so for ever on the rank that the
// frames leave.
#pragma once

#include <array>
#include <cstdint>

#include "fiber/piece.hpp"
#include "sojourn/detail/waiters.hpp"

namespace sojourn::detail {

/// An object that a fiber of this rank initialises, or a std::once_flag whose function it runs.
struct language_lock : waiters {
  constexpr language_lock() : waiters(waits_at::static_variable) {}
  const void* object = nullptr;  ///< Null: nobody uses this entry.
  const piece* owner = nullptr;  ///< The piece that has the frames which initialise it.
  std::uint64_t frame = 0;       ///< In these.
};
/// More at a time are unheard of: those beyond are the C++ runtime's alone, as if there were no
/// fibers. Nothing is allocated, because the runtime's own statics are initialised with locks, too.
extern std::array<language_lock, 64> language_locks;

/// The entry of `object`, or null; of null: an entry that is free.
language_lock* find_lock(const void* object);

/// The piece with the frames for whose initialisation the queue waits; null for a queue of another
/// kind.
const piece* initialiser_of(const waiters* queue);

/// Of what `older` initialises, the frames younger than the cut take theirs along, to `younger`;
/// returns how many these are.
unsigned divide_initialisations(const piece* older, const piece* younger);

}  // namespace sojourn::detail
