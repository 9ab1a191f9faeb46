// SPDX-License-Identifier: Apache-2.0
// Ranks, and running a program on all of them.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "sojourn/detail/running.hpp"

namespace sojourn {

/// A process of the job, 0 … rank_count() - 1. It has one thread and, when there are enough, a
/// core.
using rank_t = int;

inline rank_t rank_me() { return detail::job.me; }
inline rank_t rank_count() { return detail::job.count; }

/// True when `rank` runs on this rank's host: objects there are reached by plain instructions where
/// the heap is shared (`--share`), and messages go through memory, not over the network. What a
/// program means never depends on it. Suspends: never.
inline bool is_near(rank_t rank) {
  return static_cast<unsigned>(rank - detail::job.first_near) <
         static_cast<unsigned>(detail::job.near);
}

namespace detail {
/// Joins the job, runs body(context) in the main fiber, leaves the job. Returns the exit status.
int run_job(int argc, char** argv, int (*body)(void*), void* context);
}  // namespace detail

/// Runs `body` on every rank, as in MPI; a program started without the launcher is a job of one
/// rank. `body` takes nothing and returns nothing or an exit status. It runs in the rank's main
/// fiber, which never moves. Returns when every rank's body has returned, all messages have been
/// handled and all fibers have ended; the first non-zero status ends the job.
/// Errors: an exception that leaves `body` is reported and ends the job with status 1.
template <class Body>
int run(int argc, char** argv, Body body) {
  auto call = [](void* context) -> int {
    Body& b = *static_cast<Body*>(context);
    if constexpr (std::is_void_v<std::invoke_result_t<Body&>>) {
      b();
      return 0;
    } else {
      return static_cast<int>(b());
    }
  };
  return detail::run_job(argc, argv, call, std::addressof(body));
}

/// Lets other fibers and arrived messages run. Suspends.
void yield();

}  // namespace sojourn
