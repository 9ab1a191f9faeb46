// SPDX-License-Identifier: Apache-2.0
// Several threads on each rank, which hide how long shared memory takes from each other: the third
// part of sojourn/shared.hpp.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <vector>

#include "sojourn/rank.hpp"
#include "sojourn/shared_sync.hpp"
#include "sojourn/thread.hpp"

namespace sojourn::shared {

/// The number of the running thread of start(), and how many there are. Threads with neighbouring
/// numbers share a rank. Outside of start(): the rank, and the number of ranks.
int thread();
int threads();

namespace detail {
void begin_threads(int of_this_rank);
void end_threads();
void thread_begins(int number);
void thread_ends();
}  // namespace detail

/// Runs fn(number) in `threads_of_rank` threads of this rank; all ranks call it together, from
/// their main fibers, with the same number. While a thread waits for a page, a lock or a barrier,
/// others of its rank run. Threads stay on their rank. What was stored before it can be loaded in
/// the threads, and what they stored afterwards. Suspends until all threads of all ranks have
/// ended. Errors: rethrows what leaves `fn`; sojourn::error when the number is not positive, or
/// when it is called in a thread of start().
template <class F>
void start(int threads_of_rank, F&& fn) {
  using callable = std::remove_reference_t<F>;
  detail::begin_threads(threads_of_rank);
  std::vector<sojourn::thread> all;
  const auto body = reinterpret_cast<std::uintptr_t>(std::addressof(fn));
  for (int k = 0; k < threads_of_rank; ++k) {
    all.push_back(spawn(
        thread_options{.pinned = true},
        [](std::uintptr_t called, int number) {
          detail::thread_begins(number);
          std::exception_ptr thrown;
          try {
            barrier();
            (*reinterpret_cast<callable*>(called))(number);
          } catch (...) {
            thrown = std::current_exception();
          }
          // Even after an exception: the others wait for this thread.
          barrier();
          detail::thread_ends();
          if (thrown != nullptr) std::rethrow_exception(thrown);
        },
        body, rank_me() * threads_of_rank + k));
  }
  std::exception_ptr failure;
  for (sojourn::thread t : all) {
    try {
      t.join();
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  detail::end_threads();
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace sojourn::shared
