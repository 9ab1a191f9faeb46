// SPDX-License-Identifier: Apache-2.0
//
// Forks, one batch at a time as the driver commands; under SOJOURN_EXECUTION=heap each child has a
// context of its own.
//
//   fib N, fib_both N, tak, qsort, queens, list   the programs of common/fork_kernels.hpp with
//                                                 fork; forward: the list by continuations
//   plain, fork, blocked, …                       calls in a loop: see `loops`
//   count.plain, …                                the same once, without a warm-up, for counting
//                                                 their instructions under callgrind
//
// Commands arrive at rank 0, which sleeps in read() between them; other ranks wait in a barrier.

#include <array>
#include <cstdlib>
#include <exception>
#include <utility>

#include <sojourn/sojourn.hpp>

#include "common/fork_kernels.hpp"
#include "common/two_ranks.hpp"

namespace {

using namespace sojourn;
namespace kernels = bench::kernels;

struct by_fork {
  struct group {
    void join() {}
  };
  template <class T>
  struct child {
    future<T> result;
    template <class F, class... A>
    [[gnu::always_inline]] child(group&, F f, A... arguments) : result(fork(f, arguments...)) {}
    T get() { return result.get(); }
  };
};

/// The answer goes straight to whoever began.
BENCH_OPAQUE void forward(continuation<long> answer, const kernels::node* at, long before) {
  const long sum = before + at->value;
  if (at->next == nullptr) {
    answer(sum);
  } else {
    forward(std::move(answer), at->next, sum);
  }
}

using word = std::uint64_t;

/// Set by nobody, but the compiler does not know.
bool blocks = false;

BENCH_OPAQUE word increment(word value) { return value + 1; }
/// The same, in a function that could wait and one that could do something else instead.
BENCH_OPAQUE word increment_or_wait(word value) {
  if (blocks) [[unlikely]]
    yield();
  return value + 1;
}
BENCH_OPAQUE word increment_or_end(word value) {
  if (blocks) [[unlikely]]
    std::abort();
  return value + 1;
}
BENCH_OPAQUE void increment_cc(continuation<word> answer, word value) { answer(value + 1); }

/// What a child waits for, or finds: the loops differ in which comes first.
BENCH_OPAQUE word take(future<word>* from) { return from->get(); }

/// What the continuation-passing child leaves for somebody else to answer.
continuation<word> kept_answer;
BENCH_OPAQUE void keep_answer(continuation<word> answer, word) { kept_answer = std::move(answer); }

struct loop {
  const char* name;
  word (*run)(word count);
};

/// Each is a function of its own; a pair of them differs in what is counted alone.
const std::array loops{
    loop{"plain",
         [](word count) {
           word sum = 0;
           for (word i = 0; i < count; ++i) sum += increment(i);
           return sum;
         }},
    loop{"may_block",
         [](word count) {
           word sum = 0;
           for (word i = 0; i < count; ++i) sum += increment_or_wait(i);
           return sum;
         }},
    loop{"may_end",
         [](word count) {
           word sum = 0;
           for (word i = 0; i < count; ++i) sum += increment_or_end(i);
           return sum;
         }},
    loop{"fork",
         [](word count) {
           word sum = 0;
           for (word i = 0; i < count; ++i) {
             sum += fork([](word v) { return increment(v); }, i).get();
           }
           return sum;
         }},
    loop{"fork_pointer",
         [](word count) {
           word sum = 0;
           for (word i = 0; i < count; ++i) sum += fork(increment, i).get();
           return sum;
         }},
    loop{"cc",
         [](word count) {
           word sum = 0;
           for (word i = 0; i < count; ++i) sum += call_cc(increment_cc, i);
           return sum;
         }},
    loop{"ready",
         [](word count) {
           word sum = 0;
           for (word i = 0; i < count; ++i) {
             auto [answer, result] = make_continuation<word>();
             answer(i);
             sum += fork(take, &result).get();
           }
           return sum;
         }},
    loop{"blocked",
         [](word count) {
           word sum = 0;
           for (word i = 0; i < count; ++i) {
             auto [answer, result] = make_continuation<word>();
             auto child = fork(take, &result);
             answer(i);
             sum += child.get();
           }
           return sum;
         }},
    loop{"cc_blocked",
         [](word count) {
           word sum = 0;
           for (word i = 0; i < count; ++i) {
             auto child = fork([](word v) { return call_cc(keep_answer, v); }, i);
             kept_answer(i);
             sum += child.get();
           }
           return sum;
         }},
};

const loop* find_loop(std::string_view name) {
  for (const loop& each : loops) {
    if (name == each.name) return &each;
  }
  return nullptr;
}

bench::figures measure(const bench::command& next) {
  if (next.operation == "forward") {
    return kernels::time_way<by_fork>(
        "list", next.plan, [](const kernels::node* first) { return call_cc(forward, first, 0L); });
  }
  if (auto found = kernels::time_way<by_fork>(next.operation, next.plan)) return found;
  constexpr std::string_view count = "count.";
  const bool counted = next.operation.starts_with(count);
  const loop* const chosen =
      find_loop(counted ? next.operation.substr(count.size()) : next.operation);
  if (chosen == nullptr) return std::nullopt;
  const auto run = [&](word iterations) {
    const word sum = chosen->run(iterations);
    bench::touch(&sum);
  };
  if (!counted) return bench::time_batches(next.plan, run);
  run(next.plan.iterations);
  return std::vector{0.0};
}

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "fib");
  return run(argc, argv, [&]() -> int {
    const int status = rank_me() == 0 ? bench::lead("bench_hybrid", options, measure) : 0;
    barrier();
    return status;
  });
}
