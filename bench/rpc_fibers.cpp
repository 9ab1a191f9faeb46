// SPDX-License-Identifier: Apache-2.0
//
// bench_rpc: what calls are compared with: switches among fibers that yield, calls served by a rank
// that is busy with them, new fibers, locks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <sojourn/sojourn.hpp>

#include "common/switches.hpp"
#include "rpc_parts.hpp"

namespace bench {

namespace {

using namespace sojourn;

bool yielding;

void yield_until_told() {
  while (yielding) yield();
}

/// Starts `count` fibers that yield, does `work`, and ends them.
template <class Work>
auto among_yielding_fibers(std::uint64_t count, Work work) {
  yielding = true;
  std::vector<thread> others;
  for (std::uint64_t i = 0; i < count; ++i) others.push_back(spawn(yield_until_told));
  auto result = work();
  yielding = false;
  for (thread& t : others) t.join();
  return result;
}

/// On rank 1: the median of a few batches of calls to rank 0.
double time_calls_back(bench::batch_plan plan) {
  auto each = bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) rpc(0, [] {}).get();
  });
  std::sort(each.begin(), each.end());
  return each[each.size() / 2];
}

}  // namespace

std::vector<double> time_switches_among(const bench::batch_plan& plan) {
  const std::uint64_t fibers = std::max<std::uint64_t>(plan.bytes, 1);
  auto a_turn = among_yielding_fibers(fibers - 1, [&] { return bench::time_switches(plan); });
  for (double& nanoseconds : a_turn) nanoseconds /= static_cast<double>(fibers);
  return a_turn;
}

/// `plan.bytes` fibers yield on rank 0, this one among them; without any it waits.
std::vector<double> time_served(const bench::batch_plan& plan) {
  const auto calls_made = static_cast<double>(plan.warm_up() + plan.iterations * plan.repeats);
  const auto serve = [&] {
    const std::uint64_t before = counters_now().switches;
    auto done = rpc(1, time_calls_back, plan);
    while (plan.bytes != 0 && !done.ready()) yield();
    const double nanoseconds = done.get();
    return std::vector<double>{nanoseconds,
                               static_cast<double>(counters_now().switches - before) / calls_made};
  };
  return among_yielding_fibers(std::max<std::uint64_t>(plan.bytes, 1) - 1, serve);
}

/// Calls of this rank to itself: one that blocks, less one that does not, less a switch.
std::vector<double> time_creation(const bench::batch_plan& plan) {
  const auto median_of = [](std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  const double blocking = median_of(bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) rpc(0, [] { yield(); }).get();
  }));
  const double plain = median_of(bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) rpc(0, [] {}).get();
  }));
  return {std::max(0.0, blocking - plain - median_of(bench::time_switches(plan)))};
}

std::vector<double> time_locks(const bench::batch_plan& plan) {
  static mutex one;
  auto both = bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      one.lock();
      bench::touch(&one);
      one.unlock();
    }
  });
  for (double& nanoseconds : both) nanoseconds /= 2;
  return both;
}

}  // namespace bench
