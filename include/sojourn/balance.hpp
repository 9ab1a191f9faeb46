// SPDX-License-Identifier: Apache-2.0
// Load balance: ready threads go from loaded ranks to idle ones without being asked. Which, and how
// it is found out who is loaded, is a policy that is chosen at run time (SOJOURN_BALANCE).
#pragma once

#include <cstdint>

namespace sojourn {

enum class balance_policy : std::uint8_t {
  none,  ///< A thread runs where it was started, until it is moved.
  /// A rank that has nothing to do asks the others, in random order, for half of what they have to
  /// spare; one that has nothing remembers who asked. Source: Blumofe and Leiserson, Scheduling
  /// Multithreaded Computations by Work Stealing (1999); steal-half: Hendler and Shavit (2002).
  steal,
  /// Each rank tells its neighbours in a hypercube how many threads it has to run, and hands over
  /// to those that have fewer. Source: Cybenko, Dynamic Load Balancing for Distributed Memory
  /// Multiprocessors (1989).
  diffuse,
};

/// Chooses the policy; all ranks call it with the same, and each has it when this returns. Threads
/// that were handed over already stay where they are. Before it is called, SOJOURN_BALANCE says
/// which, or `sojourn run --balance`; `none` otherwise. Suspends: it is collective.
void balance(balance_policy policy);

/// The policy of this rank.
balance_policy balance_now();

/// "none", "steal" or "diffuse".
const char* name_of(balance_policy policy);

}  // namespace sojourn
