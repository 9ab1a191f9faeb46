// SPDX-License-Identifier: Apache-2.0
// Load balance: ready threads go from loaded ranks to idle ones without being asked. A policy that
// is chosen at run time (SOJOURN_BALANCE) says which threads go, and how ranks find out which of
// them are loaded.
#pragma once

#include <cstdint>

namespace sojourn {

enum class balance_policy : std::uint8_t {
  none,  ///< A thread runs where it was started, until it is moved.
  /// A rank that has nothing to do asks the others, in random order, for half of what they have to
  /// spare; a rank that has nothing to spare remembers who asked. Source: Blumofe and Leiserson,
  /// Scheduling Multithreaded Computations by Work Stealing (1999); steal-half: Hendler and Shavit
  /// (2002).
  steal,
  /// Each rank tells its neighbours in a hypercube how many threads it has to run, and hands over
  /// to those that have fewer. Source: Cybenko, Dynamic Load Balancing for Distributed Memory
  /// Multiprocessors (1989).
  diffuse,
};

/// Chooses the policy. All ranks call it with the same policy, which every rank has when it
/// returns. Threads that were handed over already stay where they are. Before the first call,
/// `sojourn run --balance` or SOJOURN_BALANCE chooses the policy; the default is `none`. Suspends:
/// it is collective.
void balance(balance_policy policy);

/// The policy of this rank.
balance_policy balance_now();

/// "none", "steal" or "diffuse".
const char* name_of(balance_policy policy);

}  // namespace sojourn
