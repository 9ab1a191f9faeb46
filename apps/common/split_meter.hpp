// SPDX-License-Identifier: Apache-2.0
// Measures where the time of a run goes, in the paper's way: what the runtime did is counted, and
// what each of those things costs is measured in the same run (MRPC §6.1, table 8; §6.2).
#pragma once

#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/fibers.hpp"
#include "common/time_split.hpp"

namespace apps {

/// Nanoseconds that single things take on this rank, without another rank's part in them.
struct unit_costs {
  double switched = 0;  ///< One resumed piece of a stack, the dispatcher's round included.
  double fiber = 0;     ///< A handler that blocks and keeps its stack, beyond its switches.
  double call = 0;      ///< A one-way call with a word: its message built, found, entered, left.
  double byte = 0;      ///< Of arguments: copied in at one end and out at the other.
  double awaited = 0;   ///< What a call costs more when its result is waited for.
  double bundled = 0;   ///< As `call`, among many in one message (aggregate.hpp).
};

/// Measures them with calls of this rank to itself, which go through the same code as all others
/// but not through the rings to other ranks. Suspends. Some 5 ms.
inline unit_costs measure_unit_costs() {
  static std::uint64_t handled;
  constexpr int batch = 64;
  constexpr int rounds = 64;
  constexpr double calls = double{batch} * rounds;
  const auto ns_each = [](auto body) {
    double least = 1e300;  // Of three: what disturbs only adds.
    for (int attempt = 0; attempt < 3; ++attempt) {
      const std::uint64_t start_ns = sojourn::now_ns();
      for (int round = 0; round < rounds; ++round) body();
      least = std::min(least, static_cast<double>(sojourn::now_ns() - start_ns) / calls);
    }
    return least;
  };
  const auto one_way = [&](auto argument) {
    return ns_each([&] {
      const std::uint64_t wanted = handled + batch;
      for (int i = 0; i < batch; ++i) {
        sojourn::rpc_ff(
            sojourn::rank_me(), [](const decltype(argument)& a) { handled += a[0] == 0 ? 1u : 2u; },
            argument);
      }
      sojourn::flush();  // where all calls are bundled (SOJOURN_AGGREGATE)
      while (handled != wanted) sojourn::yield();
    });
  };
  const auto answered = [&](auto body) {
    return ns_each([&] {
      std::array<sojourn::future<void>, batch> results;
      for (auto& r : results) r = sojourn::rpc(sojourn::rank_me(), body, handled);
      for (auto& r : results) r.get();
    });
  };

  unit_costs cost;
  constexpr int yields = 2000;
  const sojourn::counters before = sojourn::counters_now();
  const std::uint64_t start_ns = sojourn::now_ns();
  in_fibers(2, [](int) {
    for (int i = 0; i < yields; ++i) sojourn::yield();
  });
  const double switches = static_cast<double>((sojourn::counters_now() - before).switches);
  cost.switched = static_cast<double>(sojourn::now_ns() - start_ns) / std::max(switches, 1.0);

  cost.call = one_way(std::array<std::uint64_t, 1>{});
  using block = std::array<std::uint64_t, 128>;
  cost.byte = std::max(0.0, one_way(block{}) - cost.call) / (sizeof(block) - 8);
  {
    const sojourn::aggregated bundles;
    cost.bundled =
        ns_each([&] {
          const std::uint64_t wanted = handled + batch * rounds;
          for (int i = 0; i < batch * rounds; ++i) {
            sojourn::rpc_ff(
                sojourn::rank_me(), [](std::uint64_t a) { handled += a; }, std::uint64_t{1});
          }
          sojourn::flush();
          while (handled != wanted) sojourn::yield();
        }) /
        rounds;
  }
  cost.awaited = std::max(0.0, answered([](std::uint64_t) {}) - cost.call);
  // One that yields once is left and resumed once.
  cost.fiber = std::max(0.0, answered([](std::uint64_t) { sojourn::yield(); }) - cost.call -
                                 cost.awaited - cost.switched);
  return cost;
}

/// Around the measured part of a run.
class split_meter {
 public:
  /// Collective. Suspends. Begins when all ranks are here.
  void start() { start(measure_unit_costs()); }
  /// The same with what was measured before, for the next of several runs.
  void start(const unit_costs& cost) {
    cost_ = cost;
    sojourn::barrier();
    before_ = sojourn::counters_now();
    start_ns_ = sojourn::now_ns();
  }
  /// Collective. Suspends. Ends when all ranks are here.
  void stop() {
    sojourn::barrier();
    seconds_ = static_cast<double>(sojourn::now_ns() - start_ns_) * 1e-9;
    spent_ = sojourn::counters_now() - before_;
  }

  /// Of the slowest rank. Collective.
  double seconds() const {
    return sojourn::reduce(seconds_, [](double a, double b) { return std::max(a, b); });
  }
  /// Of all ranks together. Collective.
  sojourn::counters spent() const { return sojourn::reduce(spent_, std::plus<>{}); }

  /// `cpu_seconds`: what this rank's computing takes alone, on data of its own. Collective.
  ///   threads = switches × a switch + fibers × a fiber
  ///   sync = answered calls × what waiting adds + messages of collectives × a call
  ///   marshalling = handled calls × a call, alone or bundled + bytes sent × a byte
  /// Each is counted where it happens; a call's two ends are on two ranks, so only the sum over the
  /// ranks, and with it the average, is right.
  time_split split(double cpu_seconds) const {
    const auto n = [](std::uint64_t count) { return static_cast<double>(count) * 1e-9; };
    time_split mine;
    mine.total = seconds_;
    mine.cpu = cpu_seconds;
    mine.threads = n(spent_.switches) * cost_.switched + n(spent_.fibers_made) * cost_.fiber;
    mine.sync = n(spent_.replies_sent) * cost_.awaited + n(spent_.collective_messages) * cost_.call;
    mine.marshalling = (n(spent_.handlers_run) - n(spent_.calls_bundled)) * cost_.call +
                       n(spent_.calls_bundled) * cost_.bundled +
                       n(spent_.request_bytes + spent_.reply_bytes) * cost_.byte;
    const time_split sum = sojourn::reduce(mine, [](const time_split& a, const time_split& b) {
      return time_split{a.total + b.total,     a.cpu + b.cpu,   a.net + b.net,
                        a.threads + b.threads, a.sync + b.sync, a.marshalling + b.marshalling};
    });
    const double ranks = sojourn::rank_count();
    return split_of(sum.total / ranks, sum.cpu / ranks, sum.threads / ranks, sum.sync / ranks,
                    sum.marshalling / ranks);
  }

  const unit_costs& costs() const { return cost_; }

 private:
  unit_costs cost_;
  sojourn::counters before_;
  sojourn::counters spent_;
  std::uint64_t start_ns_ = 0;
  double seconds_ = 0;
};

/// Of this rank's, for machines.
inline nlohmann::ordered_json to_json(const unit_costs& c) {
  return {{"switch_ns", c.switched}, {"fiber_ns", c.fiber},     {"call_ns", c.call},
          {"byte_ns", c.byte},       {"awaited_ns", c.awaited}, {"bundled_ns", c.bundled}};
}

}  // namespace apps
