// SPDX-License-Identifier: Apache-2.0
// The steps of a computation that use what else the runtime offers beside calls and forks: threads,
// mutexes, sleeps, strings, bundles of small calls, and collectives meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

#include "computation.hpp"

namespace cut_rules {

// What threads have stored for who started them on this rank, by a number.
inline u64 threads_started = 0;
inline std::unordered_map<u64, outcome> stored_by_threads;

inline sojourn::mutex lock_of_rank;
inline u64 holders_of_lock = 0;
inline u64 small_calls = 0;

inline void store_of_thread(u64 number, u64 value, bool threw) {
  if (!stored_by_threads.emplace(number, outcome{value, threw}).second)
    fail(value, "a thread has stored its value twice");
}

/// A thread that moves, computes, moves, and stores what it has where it was started.
inline void thread_body(sojourn::rank_t home, u64 number, u64 x, u64 depth) {
  sojourn::migrate(sojourn::self(), rank_of(hash(x)));
  const outcome o = outcome_of([&] { return node<true>(x, depth, {}); });
  sojourn::migrate(sojourn::self(), rank_of(hash(x + 1)));
  sojourn::rpc(home, store_of_thread, number, o.value, o.threw).get();
}

inline outcome take_of_thread(u64 number) {
  const auto found = stored_by_threads.find(number);
  if (found == stored_by_threads.end()) fail(number, "a joined thread has stored nothing");
  const outcome o = found->second;
  stored_by_threads.erase(found);
  return o;
}

/// Short, or with memory of its own.
inline std::string text_of(u64 x) { return std::string(x % 70, static_cast<char>('a' + x % 26)); }
inline std::string longer_text(const std::string& text, u64 x) {
  if (text != text_of(x)) fail(x, "a string has come with other letters");
  const sojourn::stay here;
  if (x % 3 == 0) sojourn::yield();
  return text + text;
}

template <bool Real>
class feature_steps {
 public:
  explicit feature_steps(computation<Real>& c) : c_(c) {}

  void thread(u64 x) {
    if (c_.depth_ == 0) return;
    if constexpr (Real) {
      const sojourn::rank_t home = sojourn::rank_me();
      const u64 number = ++threads_started;
      const sojourn::thread_options options{.shared_stack = x % 4 == 0};
      sojourn::thread t =
          sojourn::spawn_on(rank_of(x), options, thread_body, home, number, x, c_.depth_ - 1);
      if (x % 3 == 0) c_.wait(x);
      t.join();
      c_.add(sojourn::rpc(home, take_of_thread, number).get().value);
      happened(event::joined_thread);
    } else {
      c_.add(outcome_of([&] { return node<false>(x, c_.depth_ - 1, {}); }).value);
    }
  }

  void lock([[maybe_unused]] u64 x) {
    if constexpr (Real) {
      const sojourn::stay here;
      const std::lock_guard turn(lock_of_rank);
      if (holders_of_lock++ != 0) fail(c_.seed_, "two fibers hold a mutex");
      c_.wait(x);
      --holders_of_lock;
    }
  }

  void sleep([[maybe_unused]] u64 x) {
    if constexpr (Real) sojourn::sleep_for(std::chrono::microseconds(x % 60));
  }

  void text(u64 x) {
    if constexpr (Real) {
      const sojourn::stay here;
      const std::string got = sojourn::rpc(rank_of(x), longer_text, text_of(x), x).get();
      if (got != text_of(x) + text_of(x)) fail(c_.seed_, "a string has come back with others");
      c_.add(got.size());
    } else {
      c_.add(2 * text_of(x).size());
    }
  }

  void bundle(u64 x) {
    const u64 calls = x % 50;
    if constexpr (Real) {
      const sojourn::aggregated here({.bytes = 256u << x / 64 % 6});
      const sojourn::rank_t to = rank_of(x);
      sojourn::finish([&] {
        for (u64 i = 0; i < calls; ++i) sojourn::rpc_ff(to, [] { ++small_calls; });
        c_.add(c_.node_or(x, calls));
        for (u64 i = 0; i < calls; ++i)
          sojourn::rpc_ff(to, sojourn::nonblocking([] { --small_calls; }));
      });
    } else {
      c_.add(c_.node_or(x, calls));
    }
  }

 private:
  computation<Real>& c_;
};

/// Collectives, one after the other, while the programs run.
inline void check_collectives(u64 rounds) {
  const sojourn::stay here;
  const auto me = static_cast<u64>(sojourn::rank_me());
  const auto ranks = static_cast<u64>(sojourn::rank_count());
  for (u64 i = 0; i < rounds; ++i) {
    const u64 x = hash(i);
    switch (i % 4) {
      case 0:
        if (sojourn::reduce(i + me, std::plus<>{}) != ranks * i + ranks * (ranks - 1) / 2)
          fail(i, "a reduction has another sum");
        break;
      case 1:
        if (sojourn::broadcast(me == x % ranks ? x : 0, rank_of(x % ranks << 8)) != x)
          fail(i, "a broadcast has brought another value");
        break;
      case 2: {
        const auto all = sojourn::all_gather(hash(me + i));
        for (u64 r = 0; r < ranks; ++r) {
          if (all[r] != hash(r + i)) fail(i, "a gather has another value of a rank");
        }
        break;
      }
      default:
        sojourn::barrier();
    }
    if (x % 3 == 0) sojourn::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace cut_rules
