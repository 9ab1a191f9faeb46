// SPDX-License-Identifier: Apache-2.0
// The way in for threads that the program has made itself: a std::thread, one of OpenMP, or one of
// a library that calls back. Only the rank's own thread may use Sojourn; other threads hand over to
// it what is to be done.
//
// A thread reads lines while the rank goes on, and hands each over (docs/examples/post.cpp):
//
//     std::thread reader([&] {
//       for (std::string line; std::getline(in, line);) {
//         post([&, line] { total += static_cast<long>(line.size()); });
//       }
//       post([&] { all_read.release(); });
//     });
//     all_read.acquire();  // other fibers of the rank go on meanwhile
//     reader.join();
#pragma once

#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "sojourn/rank.hpp"
#include "sojourn/rpc.hpp"

namespace sojourn {

namespace detail {

/// A function that was handed to this process's rank.
struct posted_function {
  /// Calls the function if `call` is true; destroys it in any case.
  void (*end)(posted_function* self, bool call);
  posted_function* next = nullptr;
};
/// Hands the function over to the rank, which then owns it. Called by any thread. Throws
/// sojourn::error when no rank runs in this process.
void post_function(posted_function* function);

}  // namespace detail

/// Hands fn() over to the rank of this process: it runs there soon, once, as a fiber, so that it
/// may do all that the body of run() may do. `fn` is called without arguments; it and what it
/// captures stay in this process, so pointers and references are allowed as they are between
/// threads.
///
/// May be called by any thread, the rank's own included; not by a signal handler. What one thread
/// posts begins in that order. Neither `finish` nor the end of the body waits for it: let the body
/// wait for what was posted (a semaphore, released by the last function), and then join the thread;
/// one that posts on and on without a pause keeps run() from returning.
/// A job in which other threads exist that may post is not reported as deadlocked. Suspends: never.
/// Errors: sojourn::error before run() has begun the body and after that has ended; std::bad_alloc.
/// An exception that leaves `fn` ends the job.
template <class F>
  requires std::is_invocable_v<std::decay_t<F>&>
void post(F&& fn) {
  struct held : detail::posted_function {
    explicit held(F&& f) : fn(std::forward<F>(f)) {}
    std::decay_t<F> fn;
  };
  auto function = std::make_unique<held>(std::forward<F>(fn));
  function->end = [](detail::posted_function* self, bool call) {
    const std::unique_ptr<held> mine(static_cast<held*>(self));
    if (call) mine->fn();
  };
  detail::post_function(function.get());
  // The rank has it now, and may have run it already.
  (void)function.release();
}

/// The same for any rank: rpc_ff(rank, fn, arguments…), made by the rank of this process. What
/// rpc_ff asks of `fn` and the arguments is asked here.
template <class F, class... A>
  requires std::is_invocable_v<F, A...>
void post(rank_t rank, F fn, A... arguments) {
  post([rank, fn, ... values = std::move(arguments)]() mutable {
    rpc_ff(rank, fn, std::move(values)...);
  });
}

}  // namespace sojourn
