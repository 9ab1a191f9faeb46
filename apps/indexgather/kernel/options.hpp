// SPDX-License-Identifier: Apache-2.0
// The command line and the report that all forms of indexgather share.
#pragma once

#include <fmt/format.h>

#include <string>

#include "common/command_line.hpp"
#include "common/time_split.hpp"
#include "indexgather/kernel/reads.hpp"

namespace apps::indexgather {

inline void add_options(command_line& options, settings& chosen) {
  options
      .add("--log2", chosen.log2_words, "Logarithm of the number of words on each rank: 20 is 1M")
      .between(4u, 32u);
  options.add("--reads", chosen.reads, "Reads made by each rank").between(1u, 1u << 31);
  options
      .add("--bundle", chosen.bundle_bytes,
           "Bytes of aggregated reads that go to a rank in one message")
      .between(256u, 1u << 20);
}

inline std::string report_text(const settings& s, const std::string& form, int ranks,
                               double seconds, const time_split& split) {
  const double all = static_cast<double>(s.reads) * ranks;
  return fmt::format(
      "indexgather {}: 2^{} words on each of {} ranks, {} reads by each, all right\n"
      "{:.3f} ms, {:.2f} million reads a second, {:.2f} ns a read of a rank\n{}",
      form, s.log2_words, ranks, s.reads, seconds * 1e3, all / seconds * 1e-6,
      seconds / static_cast<double>(s.reads) * 1e9, to_text(split));
}

inline nlohmann::ordered_json report_json(const settings& s, const std::string& form, int ranks,
                                          double seconds, const time_split& split) {
  return {{"form", form},
          {"ranks", ranks},
          {"log2_words", s.log2_words},
          {"reads", s.reads},
          {"seconds", seconds},
          {"reads_per_second", static_cast<double>(s.reads) * ranks / seconds},
          {"split", to_json(split)}};
}

}  // namespace apps::indexgather
