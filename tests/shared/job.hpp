// SPDX-License-Identifier: Apache-2.0
// A job of many ranks in one process, whose threads run a program (program.hpp) on the shared
// memory as it is in src/shared: only the rank below it is simulated. A message may be delivered
// between any two instructions, and any thread may run next: more than real ranks can do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "program.hpp"
#include "strangers.hpp"

namespace simulated {

/// What the protocol did wrong.
struct failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct totals {
  std::uint64_t programs = 0;
  std::uint64_t steps = 0;
  std::uint64_t faults = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t intervals = 0;
  std::uint64_t collections = 0;
  /// Of what ranks keep, at most, in the first half of the program's rounds, and in the second.
  std::size_t kept_first = 0;
  std::size_t kept_then = 0;
  /// Of messages about barriers, and the most of one rank.
  std::uint64_t barrier_bytes_sent = 0;
  std::uint64_t barrier_bytes_received = 0;
};

/// What a rank does not say of a program, but of a message that no rank sends.
struct refusal : failure {
  using failure::failure;
};

/// Runs a program in a random order; what went wrong, or empty. `log` is told what happens.
std::string run(const program& p, std::uint64_t order, totals& sum, std::string* log = nullptr);

/// The same with such messages; whether one of them was refused. What the program then loads may be
/// wrong, and it may not end: but it must not go on for ever, and no rank may crash.
bool run_with(strangers& s, const program& p, std::uint64_t order, totals& sum,
              std::string* log = nullptr);

}  // namespace simulated
