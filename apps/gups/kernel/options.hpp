// SPDX-License-Identifier: Apache-2.0
// The command line and the report that all forms of GUPS share.
#pragma once

#include <fmt/format.h>

#include <string>

#include "common/command_line.hpp"
#include "common/time_split.hpp"
#include "gups/kernel/updates.hpp"

namespace apps::gups {

inline void add_options(command_line& options, settings& chosen) {
  options
      .add("--log2", chosen.log2_words, "Logarithm of the number of words on each rank: 20 is 1M")
      .between(4u, 32u);
  options.add("--updates", chosen.updates, "Updates made by each rank")
      .between(std::uint64_t{1}, std::uint64_t{1} << 40);
  options
      .add("--bundle", chosen.bundle_bytes,
           "Bytes of aggregated updates that go to a rank in one message")
      .between(256u, 1u << 20);
}

inline std::string report_text(const settings& s, const std::string& form, int ranks,
                               double seconds, const time_split& split) {
  const double all = static_cast<double>(s.updates) * ranks;
  return fmt::format(
      "gups {}: 2^{} words on each of {} ranks, {} updates by each, 0 errors\n"
      "{:.3f} ms, {:.2f} million updates a second, {:.2f} ns an update of a rank\n{}",
      form, s.log2_words, ranks, s.updates, seconds * 1e3, all / seconds * 1e-6,
      seconds / static_cast<double>(s.updates) * 1e9, to_text(split));
}

inline nlohmann::ordered_json report_json(const settings& s, const std::string& form, int ranks,
                                          double seconds, const time_split& split) {
  return {{"form", form},
          {"ranks", ranks},
          {"log2_words", s.log2_words},
          {"updates", s.updates},
          {"seconds", seconds},
          {"updates_per_second", static_cast<double>(s.updates) * ranks / seconds},
          {"split", to_json(split)}};
}

}  // namespace apps::gups
