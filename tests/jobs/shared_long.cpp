// SPDX-License-Identifier: Apache-2.0
// Programs that use shared memory for long, with the settings that everybody has: what ranks keep
// of changes is given back, and their memory does not grow.
//
//   job_shared_long lock_only|dense INCREMENTS [SECONDS]
//
// With SECONDS it is content with a tenth of the increments where cores are busy: where another
// process has a core, a handover takes as long as that process's turn.
#include <sojourn/sojourn.hpp>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "check.hpp"
#include "resident.hpp"

namespace {

using namespace sojourn;

constexpr std::size_t page_longs = 4096 / sizeof(long);

shared::fair_mutex guard;

/// All ranks increment the same words under one mutex, `words` of them at a time, and meet at no
/// barrier. Each handover is an interval.
void all_increment(long increments, std::size_t words, std::chrono::seconds at_most) {
  alarm(3600);  // longer than claims may take
  const auto until = std::chrono::steady_clock::now() + at_most;
  long* values = nullptr;
  if (rank_me() == 0) {
    values = shared::alloc<long>(2 * page_longs);
    values[page_longs] = increments;
  }
  values = broadcast(shared::pointer<long>(values), 0).get();
  long& goal = values[page_longs];  // a page of its own
  shared::barrier();
  const std::uint64_t intervals_before = shared::counters_now().intervals;
  // For each hundredth of the increments: how much memory was used at most, and the collections.
  std::vector<long> most;
  std::vector<std::uint64_t> collections;
  bool is_over = false;
  for (long round = 0, now = 0; !is_over; ++round) {
    guard.lock();
    now = values[0];
    if (round % 256 == 0 && now >= increments / 10 && now < goal &&
        std::chrono::steady_clock::now() > until)
      goal = now;
    is_over = now >= goal;
    if (!is_over)
      for (std::size_t n = 0; n < words; ++n) ++values[n];
    guard.unlock();
    sched_yield();  // where ranks share cores, another one may want it
    // A rank that had few turns looks once more at the end.
    if (round % 256 != 0 && !is_over) continue;
    const auto part = static_cast<std::size_t>(now / std::max(increments / 100, 1L));
    most.resize(std::max(most.size(), part + 1));
    collections.resize(most.size());
    most[part] = std::max(most[part], resident_kib());
    collections[part] = shared::counters_now().collections;
  }
  const auto half = most.begin() + static_cast<std::ptrdiff_t>((most.size() + 1) / 2);
  const long at_first = *std::max_element(most.begin(), half);
  const long later = half == most.end() ? 0 : *std::max_element(half, most.end());
  const std::uint64_t collections_at_first =
      *std::max_element(collections.begin(), collections.begin() + (half - most.begin()));
  sojourn::barrier();
  const auto closed = static_cast<long>(shared::counters_now().intervals - intervals_before);
  const long intervals = reduce(closed, std::plus<>{});
  std::printf("rank %d: %ld intervals of all, %ld MiB at first, %ld MiB later, %llu collections\n",
              rank_me(), intervals, at_first >> 10, later >> 10,
              static_cast<unsigned long long>(shared::counters_now().collections));
  CHECK(goal >= increments / 10);
  CHECK(later != 0);
  for (std::size_t n = 0; n < words; ++n) CHECK_EQUAL(values[n], goal);
  // Of changes 64 MiB are kept (SOJOURN_SHARED_DIFFS), by what they hold; with what lies around
  // that they take up to three times as much.
  // The sanitizers keep memory that was given back.
  CHECK(sanitized || later < 240 << 10);
  if (collections_at_first >= 2) CHECK(sanitized || later < at_first + at_first / 4 + (8 << 10));
  shared::barrier();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "lock_only";
  const long increments = argc > 2 ? std::stol(argv[2]) : 1'000'000;
  const std::chrono::seconds at_most(argc > 3 ? std::stol(argv[3]) : 24 * 3600);
  return run(argc, argv, [&] {
    check::claim(("memory does not grow: " + what).c_str(),
                 [&] { all_increment(increments, what == "dense" ? page_longs : 1, at_most); });
    return check::verdict();
  });
}
