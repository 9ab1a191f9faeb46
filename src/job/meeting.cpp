// SPDX-License-Identifier: Apache-2.0
#include "job/meeting.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/check.hpp"
#include "job/run_rank.hpp"
#include "memory/address_map.hpp"
#include "migrate/fingerprint.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

/// Addresses must mean the same in all ranks.
void compare_memory(const rank_block& first, const rank_block& rank, int r) {
  auto compare = [r](std::uint64_t of_first, std::uint64_t here, unsigned shift, const char* what) {
    if (of_first == here) return;
    throw error(
        format("rank 0 has %s=%llu and rank %d has %llu: start all ranks of a job with the "
               "same",
               what, static_cast<unsigned long long>(of_first >> shift), r,
               static_cast<unsigned long long>(here >> shift)));
  };
  compare(first.region_bytes, rank.region_bytes, 30, "SOJOURN_REGION_GIB");
  compare(first.stack_bytes, rank.stack_bytes, 10, "SOJOURN_STACK_KIB");
  compare(first.main_stack_bytes, rank.main_stack_bytes, 10, "SOJOURN_MAIN_STACK_KIB");
  compare(first.page_bytes, rank.page_bytes, 0, "pages of bytes");
}

/// Hosts may differ in what stacks need: the job works, and moves less. Rank 0 says so once.
void warn_of_unlike_hosts(const job_segment& segment, int first, int other) {
  static bool is_said = false;
  if (job.me != 0 || std::exchange(is_said, true)) return;
  std::fprintf(
      stderr,
      "sojourn: ranks %d and %d are on hosts that differ: one has %s. Stacks do not go "
      "between such hosts: there, via::migrate means via::rpc, and threads stay "
      "(docs/cluster.md)\n",
      first, other,
      what_differs(segment.ranks[first].stack_needs, segment.ranks[other].stack_needs).c_str());
}

}  // namespace

void introduce_myself(rank_block& mine) {
  std::snprintf(mine.program, sizeof mine.program, "%s", program_invocation_short_name);
  const fingerprints& own = fingerprint();
  mine.image = own.image;
  std::memcpy(mine.stack_needs, own.stack_needs, sizeof mine.stack_needs);
  mine.wire_fingerprint = wire_fingerprint();
  mine.region_bytes = addresses.bytes;
  mine.stack_bytes = addresses.stack_bytes;
  mine.main_stack_bytes = addresses.main_stack_bytes;
  mine.page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void arrive(job_segment& segment, void (*ring)()) {
  const std::uint32_t arrived = segment.start_arrived.fetch_add(1) + 1;
  if (arrived >= segment.rank_count) {
    syscall(SYS_futex, &segment.start_arrived, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  } else if (arrived == segment.ranks_here) {
    ring();
  }
}

void meet_others(job_segment& segment, void (*ring)()) {
  segment.ranks[job.me].state.store(rank_state::attached);
  arrive(segment, ring);
  // Returns at once when another rank has arrived since the word was read.
  for (std::uint32_t seen; (seen = segment.start_arrived.load()) < segment.rank_count;) {
    syscall(SYS_futex, &segment.start_arrived, FUTEX_WAIT, seen, nullptr, nullptr, 0);
  }
  if (segment.start_failed.load() != 0) std::_Exit(status_not_started);  // that rank said why
  compare_ranks(segment);
}

void compare_ranks(const job_segment& segment) {
  const rank_block& rank_0 = segment.ranks[0];
  const rank_block* first = nullptr;  // the first rank of its part
  for (int r = 0; r < static_cast<int>(segment.rank_count); ++r) {
    const rank_block& rank = segment.ranks[r];
    compare_memory(rank_0, rank, r);
    if (first == nullptr || rank.part != first->part) first = &rank;
    const bool is_alike = std::equal(std::begin(rank.stack_needs), std::end(rank.stack_needs),
                                     std::begin(first->stack_needs));
    if (rank.image == first->image && !is_alike && segment.has_several_hosts())
      warn_of_unlike_hosts(segment, static_cast<int>(first - &rank_0), r);
    else if (rank.image != first->image || !is_alike) {
      throw error(
          format("ranks %td and %d run different programs or libraries, so their stacks cannot be "
                 "exchanged: start the same executable on every rank, or the programs as those of "
                 "several: sojourn run -n 1 ./a : -n 1 ./b",
                 first - &rank_0, r));
    }
    if (rank.wire_fingerprint != rank_0.wire_fingerprint) {
      throw error(
          format("ranks 0 (%s) and %d (%s) were built with different versions of Sojourn, or one "
                 "without checked mode: build them with the same",
                 rank_0.program, r, rank.program));
    }
  }
}

}  // namespace sojourn::detail
