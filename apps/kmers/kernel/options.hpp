// SPDX-License-Identifier: Apache-2.0
// The command line and the report that both programs share.
#pragma once

#include <fmt/format.h>

#include <compiled_json.hpp>
#include <string>

#include "common/command_line.hpp"
#include "kmers/kernel/kmers.hpp"

namespace apps::kmers {

inline void add_options(command_line& options, settings& chosen) {
  options.add("--bases", chosen.bases, "Bases of the genome")
      .between(std::uint64_t{100}, std::uint64_t{1} << 34);
  options.add("--coverage", chosen.coverage, "How many reads cover a base, on average")
      .between(std::uint64_t{1}, std::uint64_t{1000});
  options.add("--k", chosen.k, "Bases of a k-mer; odd, so that none is its own reverse complement")
      .between(3u, 31u);
  options
      .add("--random-keys", chosen.random_keys,
           "If not 0: so many different random keys of each rank in place of k-mers")
      .between(std::uint64_t{0}, std::uint64_t{1} << 34);
  options.add("--bundle", chosen.bundle_bytes, "Bytes of what goes to a rank in one message")
      .between(std::uint64_t{256}, std::uint64_t{1} << 20);
}
inline void check_options(const settings& chosen) {
  if (chosen.k % 2 == 0) throw refusal(2, fmt::format("--k {}: give an odd number", chosen.k));
}

inline std::string report_text(const settings& s, const std::string& form, int ranks,
                               double seconds, const summary& all) {
  const double each = seconds * ranks / static_cast<double>(all.counted) * 1e9;
  const std::string of = s.random_keys != 0 ? "random keys" : fmt::format("{}-mers", s.k);
  return fmt::format(
      "kmers, {}: {} {}, {} different, on {} ranks; the same as std::unordered_map has\n"
      "{:.3f} ms, {:.2f} million a second, {:.1f} ns each of a rank\n",
      form, all.counted, of, all.different, ranks, seconds * 1e3,
      static_cast<double>(all.counted) / seconds * 1e-6, each);
}
inline nlohmann::ordered_json report_json(const settings& s, const std::string& form, int ranks,
                                          double seconds, double seconds_alone,
                                          const summary& all) {
  return {{"form", form},
          {"ranks", ranks},
          {"bases", s.bases},
          {"coverage", s.coverage},
          {"k", s.k},
          {"random_keys", s.random_keys},
          {"counted", all.counted},
          {"different", all.different},
          {"seconds", seconds},
          {"seconds_alone", seconds_alone}};
}

}  // namespace apps::kmers
