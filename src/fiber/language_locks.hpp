// SPDX-License-Identifier: Apache-2.0
// Locks that the language takes: for a function-local static while it is initialised, and for a
// std::once_flag while its function runs. To the C++ runtime all fibers of a rank are one thread,
// which it would stop for ever if a second fiber came while the first one waits. Here the second
// fiber waits as for any other object of its rank (language_calls.cpp). Frames that have taken such
// a lock may not migrate (running.static_inits): the object would stay locked for ever on the rank
// that they leave.
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
  const piece* owner = nullptr;  ///< The piece whose frames initialise the object.
  std::uint64_t frame = 0;       ///< An address in these frames.
};
/// No program has more at a time. Further ones would be left to the C++ runtime alone, as if there
/// were no fibers. Nothing is allocated, because the runtime's own statics are initialised with
/// locks, too.
extern std::array<language_lock, 64> language_locks;

/// The entry of `object`, or null if there is none. find_lock(nullptr) returns a free entry, or
/// null.
language_lock* find_lock(const void* object);

/// The piece whose initialisation the fibers in this queue wait for; null for a queue of another
/// kind.
const piece* initialiser_of(const waiters* queue);

/// To be called when `older` is cut: gives `younger` the initialisations that its frames have
/// begun; returns how many these are.
unsigned divide_initialisations(const piece* older, const piece* younger);

}  // namespace sojourn::detail
