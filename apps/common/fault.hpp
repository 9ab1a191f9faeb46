// SPDX-License-Identifier: Apache-2.0
// Telling all ranks what one of them found wrong.
#pragma once

#include <sojourn/sojourn.hpp>

#include <string>

namespace apps {

/// What the first rank with something to say has found wrong, on every rank; empty when nobody has.
/// Long texts are cut off. Collective. Suspends.
inline std::string first_fault(const std::string& found_here) {
  using text = sojourn::inline_string<250>;
  const text here = found_here.substr(0, text::capacity());
  const auto all = sojourn::all_gather(here);
  for (sojourn::rank_t r = 0; r < sojourn::rank_count(); ++r) {
    const text& fault = all[static_cast<std::size_t>(r)];
    if (!fault.empty()) return "rank " + std::to_string(r) + ": " + fault.str();
  }
  return {};
}

}  // namespace apps
