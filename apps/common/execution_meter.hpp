// SPDX-License-Identifier: Apache-2.0
// What programs of many small children cost in place, and on the heap (SOJOURN_EXECUTION): time,
// and how often what happened. Source: Plevyak, Karamcheti, Zhang and Chien, §4.3.
#pragma once

#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <compiled_json.hpp>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace apps {

/// Returns when all of a set of children have ended, and forgets them; rethrows what the first of
/// them threw. Suspends.
inline void join(std::vector<sojourn::future<void>>& children) {
  sojourn::touch(std::span(children));
  for (auto& child : children) child.get();
  children.clear();
}

/// Of a measured part: its time on the slowest rank, and counts of all ranks together.
struct executions {
  double seconds = 0;
  std::vector<double> laps;  ///< Seconds of each part, where the program takes them (lap()).
  std::uint64_t local = 0;   ///< Invocations of methods of objects of the same rank.
  std::uint64_t remote = 0;  ///< And of other ranks'.
  std::uint64_t forks = 0;
  std::uint64_t forks_blocked = 0;  ///< That needed a context of their own after all.
  std::uint64_t forks_on_heap = 0;  ///< That had one from the start.
  std::uint64_t messages = 0;

  double local_over_remote() const {
    return static_cast<double>(local) / static_cast<double>(remote);
  }
  /// Two lines.
  std::string text() const {
    const std::string locality =
        remote == 0 ? "none remote" : fmt::format("{:.3g}:1", local_over_remote());
    return fmt::format(
        "{} local and {} remote invocations ({}), {} messages\n"
        "{} forks, of which {} blocked and {} were on the heap from the start\n",
        local, remote, locality, messages, forks, forks_blocked, forks_on_heap);
  }
  void add_to(nlohmann::ordered_json& figures) const {
    figures["seconds"] = seconds;
    if (!laps.empty()) figures["lap_seconds"] = laps;
    figures["local"] = local;
    figures["remote"] = remote;
    figures["forks"] = forks;
    figures["forks_blocked"] = forks_blocked;
    figures["forks_on_heap"] = forks_on_heap;
    figures["messages"] = messages;
  }
};

class execution_meter {
 public:
  /// Collective. Suspends. Begins when all ranks are here.
  void start() {
    sojourn::barrier();
    before_ = sojourn::counters_now();
    start_ns_ = lap_ns_ = sojourn::now_ns();
    laps_.clear();
  }
  /// Collective. Suspends. Ends a part of what is measured, when all ranks are here.
  void lap() {
    sojourn::barrier();
    laps_.push_back(static_cast<double>(sojourn::now_ns() - lap_ns_) * 1e-9);
    lap_ns_ = sojourn::now_ns();
  }
  /// Collective. Suspends. Ends when all ranks are here.
  executions stop() const {
    sojourn::barrier();
    const double seconds = static_cast<double>(sojourn::now_ns() - start_ns_) * 1e-9;
    const sojourn::counters spent =
        sojourn::reduce(sojourn::counters_now() - before_, std::plus<>{});
    return {.seconds = sojourn::reduce(seconds, [](double a, double b) { return std::max(a, b); }),
            .laps = laps_,
            .local = spent.calls_local,
            .remote = spent.calls_remote,
            .forks = spent.forks,
            .forks_blocked = spent.forks_blocked,
            .forks_on_heap = spent.forks_on_heap,
            .messages = spent.messages()};
  }

 private:
  sojourn::counters before_;
  std::uint64_t start_ns_ = 0;
  std::uint64_t lap_ns_ = 0;
  std::vector<double> laps_;
};

}  // namespace apps
