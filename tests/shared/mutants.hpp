// SPDX-License-Identifier: Apache-2.0
// Each rule of the protocols, with programs that notice when it is left out.
#pragma once

#include <cstdint>
#include <span>

#include "program.hpp"
#include "shared/pages/rules.hpp"

namespace simulated {

using sojourn::detail::pages::rule;

struct mutant {
  const char* name;
  rule broken;
  program_sizes sizes;
  std::uint64_t first;  ///< A program that notices is among `count` from here on.
  std::uint64_t count;
};

std::span<const mutant> mutants();

}  // namespace simulated
