// SPDX-License-Identifier: Apache-2.0
// Where the time of a run went, in the categories of the literature.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <compiled_json.hpp>
#include <string>

namespace apps {

/// Seconds of a rank, averaged over the ranks; the parts add up to `total`.
/// Source: MRPC §6.2, figures 11 and 12. An MPI form has `cpu` and `net` alone, as the paper's
/// Split-C forms have: what its library does between a call and the wire cannot be told apart.
struct time_split {
  double total = 0;
  double cpu = 0;          ///< The application's own computing.
  double net = 0;          ///< Messages on their way, and waiting for them and for other ranks.
  double threads = 0;      ///< Making fibers and switching between them.
  double sync = 0;         ///< Opening, filling and taking results; messages of collectives.
  double marshalling = 0;  ///< Building messages, finding and entering what they call, copying.
};

/// Divides `total` into what computing and the runtime are known to have taken, and `net`, the
/// rest. Should they have taken more (unit costs are averages, too) the runtime's parts are made
/// smaller until they fit.
inline time_split split_of(double total, double cpu, double threads, double sync,
                           double marshalling) {
  cpu = std::min(cpu, total);
  const double runtime = threads + sync + marshalling;
  const double fitting = runtime > total - cpu ? (total - cpu) / runtime : 1;
  return {total,
          cpu,
          total - cpu - runtime * fitting,
          threads * fitting,
          sync * fitting,
          marshalling * fitting};
}

inline nlohmann::ordered_json to_json(const time_split& s) {
  return {{"total", s.total},     {"cpu", s.cpu},   {"net", s.net},
          {"threads", s.threads}, {"sync", s.sync}, {"marshalling", s.marshalling}};
}

/// Two lines for people.
inline std::string to_text(const time_split& s) {
  const auto part = [&](double seconds) {
    return fmt::format("{:.3f} ({:.0f}%)", seconds * 1e3,
                       s.total > 0 ? seconds / s.total * 100 : 0);
  };
  return fmt::format(
      "{:>12} {:>16} {:>16} {:>16} {:>16} {:>16}\n{:>12.3f} {:>16} {:>16} {:>16} "
      "{:>16} {:>16}\n",
      "ms", "cpu", "net", "threads", "sync", "marshalling", s.total * 1e3, part(s.cpu), part(s.net),
      part(s.threads), part(s.sync), part(s.marshalling));
}

}  // namespace apps
