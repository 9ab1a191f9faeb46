// SPDX-License-Identifier: Apache-2.0
// Checked mode: what must be over before a fiber waits or migrates. A mutex that is held then may
// be locked by the next fiber, which stops the rank for ever; after a migration another rank would
// unlock it. Mutexes are seen through the linker's --wrap, as initialisations of statics are: a
// mutex type of our own would not see those that libraries and existing code lock.
#pragma once

#include <cstdint>

namespace sojourn::detail {

struct piece;

/// Ends the job when a frame in [sp, hi) holds a mutex or has promised not to block. `doing`:
/// "waits" or "migrates". Call only when running.watched is not 0.
void check_watched(std::uint64_t sp, std::uint64_t hi, const char* doing);

/// How many recursive mutexes fibers hold. To such a mutex all fibers of a rank are one thread, so
/// it would let a second fiber in. That ends the rank, in checked mode and without it.
extern unsigned recursive_mutexes_held;
/// To be called when `older` is cut: gives `younger` the recursive mutexes that its frames have
/// locked.
void divide_recursive_mutexes(const piece* older, const piece* younger);

}  // namespace sojourn::detail
