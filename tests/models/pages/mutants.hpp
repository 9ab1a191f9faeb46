// SPDX-License-Identifier: Apache-2.0
// Protocols in which one rule is broken: mutants. If no program fails when a rule is broken, the
// rule is not needed, or the programs do not test it.
#pragma once

#include <cstdint>

namespace page_model {

/// Breaks each rule of each protocol, one at a time, and runs the program that is known to notice,
/// which must fail then, and must not when all rules are kept. Prints a line each. Returns whether
/// all were noticed.
bool known_programs_notice_mutants();

/// Searches for such programs among `programs` random ones, of the seeds from 1 on, then among the
/// pointed ones and the small ones. Prints the first that notices each mutant. Returns whether all
/// were noticed.
bool search_for_programs_that_notice(std::uint64_t programs);

}  // namespace page_model
