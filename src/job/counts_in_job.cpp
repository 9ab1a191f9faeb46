// SPDX-License-Identifier: Apache-2.0
#include "job/counts_in_job.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "job/segment.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/counts.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

/// A copy of the counts, with which a forked child goes on.
struct {
  counters so_far;
  std::uint64_t methods;
  shared::counters of_shared;
} counts_at_fork;

void keep_counts() { counts_at_fork = {counts, counts.methods, counts.shared}; }
void take_counts() {
  static_cast<counters&>(counts) = counts_at_fork.so_far;
  counts.methods = counts_at_fork.methods;
  counts.shared = counts_at_fork.of_shared;
}

}  // namespace

void count_in_job(int segment_fd) {
  keep_counts();
  auto offset = static_cast<off_t>(job_segment::counts_offset(job.me, job.count));
  if (mmap(&counts, sizeof counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, segment_fd,
           offset) == MAP_FAILED) {
    throw error(format("the counts cannot be mapped: %s", std::strerror(errno)));
  }
  take_counts();
  // Otherwise a child that goes on without exec would count for this rank.
  pthread_atfork(keep_counts, nullptr, [] {
    if (mmap(&counts, sizeof counts, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
      take_counts();
    }
  });
}

}  // namespace sojourn::detail
