// SPDX-License-Identifier: Apache-2.0
// Several threads on each rank, which hide how long shared memory takes from each other: the third
// part of sojourn/shared.hpp.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "sojourn/calls/travels.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/shared/sync.hpp"
#include "sojourn/threads/thread.hpp"

namespace sojourn::shared {

/// The number of the running thread of run_threads(), and how many there are. Threads with
/// neighbouring numbers share a rank. Outside of run_threads(): the rank, and the number of ranks.
/// thread() suspends on a rank to which the thread has moved.
int thread();
int threads();

namespace detail {

void begin_threads(int of_this_rank);
void end_threads();
void thread_begins(int number);
/// Joins all; then rethrows what left the first of them that threw.
void join_threads(std::span<const sojourn::thread> threads);

/// What a thread of run_threads() does.
template <class Call>
void run_thread(int number, Call call) {
  thread_begins(number);
  std::exception_ptr thrown;
  try {
    barrier();
    call();
  } catch (...) {
    thrown = std::current_exception();
  }
  // Called even after an exception, because the other threads wait for this one in the barrier.
  try {
    barrier();
  } catch (...) {
    if (thrown == nullptr) thrown = std::current_exception();
  }
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

}  // namespace detail

/// Runs fn(number, arguments…) in `threads_of_rank` threads of this rank; all ranks call it
/// together, from their main fibers, with the same number. While a thread waits for a page, a lock
/// or a barrier, other threads of its rank run. What was stored before this call can be loaded in
/// the threads; what the threads stored can be loaded after it.
///
/// Where `fn` is a function or a callable without captures, and the arguments travel, threads move
/// like any others: by via::migrate, migrate_to and migrate(), though not while they hold a
/// shared::mutex. A capturing lambda is called by reference; its threads stay on their rank.
///
/// Suspends until all threads of all ranks have ended. Errors: rethrows what leaves `fn`;
/// rank_lost; sojourn::error when the number is not positive, or when it is called in a thread of
/// run_threads().
template <class F, class... A>
void run_threads(int threads_of_rank, F&& fn, A... arguments) {
  using callable = std::decay_t<F>;
  detail::begin_threads(threads_of_rank);
  std::vector<sojourn::thread> all;
  for (int k = 0; k < threads_of_rank; ++k) {
    const int number = rank_me() * threads_of_rank + k;
    if constexpr (sojourn::detail::is_captureless<callable> && (travels<A> && ...)) {
      using travelling = sojourn::detail::travelling_callable<callable>;
      all.push_back(spawn(
          thread_options{.affinity = affinity::to(rank_me())},
          [](travelling called, int mine, A... with) {
            detail::run_thread(mine, [&] { called.get()(mine, with...); });
          },
          travelling(fn), number, arguments...));
    } else {
      static_assert(
          sizeof...(A) == 0,
          "sojourn: shared::run_threads() gives arguments to functions and callables without "
          "captures, and only such as travel; capture them instead");
      all.push_back(spawn(
          thread_options{.pinned = true},
          [](std::uintptr_t called, int mine) {
            detail::run_thread(
                mine, [&] { (*reinterpret_cast<std::remove_reference_t<F>*>(called))(mine); });
          },
          reinterpret_cast<std::uintptr_t>(std::addressof(fn)), number));
    }
  }
  std::exception_ptr failure;
  try {
    detail::join_threads(all);
  } catch (...) {
    failure = std::current_exception();
  }
  detail::end_threads();
  if (failure != nullptr) std::rethrow_exception(failure);
}

/// The name of run_threads() until version 0.2.
template <class F, class... A>
[[deprecated("sojourn: shared::start() is called shared::run_threads() now")]]
void start(int threads_of_rank, F&& fn, A... arguments) {
  run_threads(threads_of_rank, std::forward<F>(fn), std::move(arguments)...);
}

}  // namespace sojourn::shared
