// SPDX-License-Identifier: Apache-2.0
//
// Forks, one batch at a time as the driver commands; under SOJOURN_EXECUTION=heap each child has a
// context of its own.
//
//   fib N, fib_both N, tak, qsort, queens, list   the programs of common/fork_kernels.hpp with
//                                                 fork; forward: the list by continuations
//   plain, fork, blocked, …                       calls in a loop: see `loops`
//   CALLER.plain, …                               the same in a frame of that schema: see `callers`
//   count.plain, …                                any of them once, without a warm-up, for counting
//                                                 their instructions under callgrind
//   taken.block, taken.find, below.block, taken.copy
//                                                 of --bytes frames: see `deep_loop`
//   waits.mb, …, finds.mb, …                      up to 400 forks whose children wait, or do not
//                                                 have to, see `fork_kinds`: rank 0 forks between
//                                                 counting_begins() and counting_ends(), and
//                                                 answers and joins them afterwards
//   request.nonblocking, …                        up to 400 requests of rank 0 to itself, see
//                                                 `requests`: it handles them between
//                                                 counting_begins() and counting_ends()
//
// Commands arrive at rank 0, which sleeps in read() between them; other ranks wait in a barrier.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

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
/// The same with a frame of each schema in between.
BENCH_OPAQUE word take_below(future<word>* from) { return take(from) + 1; }
BENCH_OPAQUE word take_forked(future<word>* from) { return fork(take, from).get() + 1; }
BENCH_OPAQUE void take_cc(continuation<word> answer, future<word>* from) { answer(take(from) + 1); }
word take_below_cc(future<word>* from) { return call_cc(take_cc, from); }

/// What of some children comes later: what they wait for, and who may answer it. Of a
/// continuation-passing one it is the answer that it leaves to somebody else.
constexpr word slots_max = 400;
std::array<future<word>, slots_max> slots;
std::array<continuation<word>, slots_max> slot_answers;

BENCH_OPAQUE void keep_answer(continuation<word> answer, word slot) {
  slot_answers[slot % slots_max] = std::move(answer);
}
/// A child that calls it, or one that replies at once; and with a frame in between.
using passing = void (*)(continuation<word>, word);
template <passing Callee>
word child_of_cc(word value) {
  return call_cc(Callee, value);
}
template <passing Callee>
BENCH_OPAQUE word cc_below(word value) {
  return call_cc(Callee, value) + 1;
}
template <passing Callee>
BENCH_OPAQUE void cc_cc(continuation<word> answer, word value) {
  answer(call_cc(Callee, value) + 1);
}
template <passing Callee>
word cc_below_cc(word value) {
  return call_cc(cc_cc<Callee>, value);
}

/// The child finds what it takes.
template <word (*Child)(future<word>*)>
word find(word count) {
  word sum = 0;
  for (word i = 0; i < count; ++i) {
    auto [answer, result] = make_continuation<word>();
    answer(i);
    sum += fork(Child, &result).get();
  }
  return sum;
}
/// It waits for it, and its caller goes on.
template <word (*Child)(future<word>*)>
word wait_for(word count) {
  word sum = 0;
  for (word i = 0; i < count; ++i) {
    auto [answer, result] = make_continuation<word>();
    auto child = fork(Child, &result);
    answer(i);
    sum += child.get();
  }
  return sum;
}
/// Its callee leaves the answer to its caller, which replies.
template <word (*Child)(word)>
word reply_later(word count) {
  word sum = 0;
  for (word i = 0; i < count; ++i) {
    auto child = fork([](word v) { return Child(v); }, i);
    slot_answers[i % slots_max](i);
    sum += child.get();
  }
  return sum;
}

/// Each iteration traverses a list, with a call or a fork at each node but the last.
template <class Way>
word traverse_often(word count) {
  static const kernels::inputs data;
  word sum = 0;
  for (word i = 0; i < count; ++i) sum += static_cast<word>(kernels::traverse<Way>(data.list()));
  return sum;
}

// ---- How a block depends on depth --------------------------------------------------------------

/// Calls work() below `depth` frames of a usual size.
template <class Work>
BENCH_OPAQUE word descend(word depth, Work& work) {
  volatile word kept[3] = {depth, depth, depth};
  const word found = depth > 1 ? descend(depth - 1, work) : work();
  return found + kept[depth % 3] - depth;
}

/// Where the frames of the child that ran last began and ended, which take_deep has looked up.
std::uintptr_t frames_high = 0;
std::uintptr_t frames_low = 0;

BENCH_OPAQUE word take_deep(future<word>* from, word depth) {
  frames_high = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  auto work = [from] {
    frames_low = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return take(from);
  };
  return descend(depth, work);
}

enum class deep_loop : word {
  taken_block,  ///< A child blocks with so many frames, which are taken away, and is joined.
  taken_find,   ///< The same when it finds what it takes.
  below_block,  ///< A child with few frames blocks; so many frames of its callers stay.
  taken_copy    ///< The frames of the first are copied out and in again, as bytes.
};

word fork_deep(bool waits, word depth, word count) {
  word sum = 0;
  for (word i = 0; i < count; ++i) {
    auto [answer, result] = make_continuation<word>();
    if (!waits) answer(i);
    auto child = fork([from = &result, depth] { return take_deep(from, depth); });
    if (waits) answer(i);
    sum += child.get();
  }
  return sum;
}

word copy_frames(word depth, word count) {
  fork_deep(false, depth, 1);
  const std::size_t bytes = frames_high - frames_low;
  std::vector<std::byte> frames(bytes), image(bytes);
  for (word i = 0; i < count; ++i) {
    std::memcpy(image.data(), frames.data(), bytes);
    bench::touch(image.data());
    std::memcpy(frames.data(), image.data(), bytes);
    bench::touch(frames.data());
  }
  return bytes;
}

word run_deep(deep_loop which, word depth, word count) {
  switch (which) {
    case deep_loop::taken_block:
      return fork_deep(true, depth, count);
    case deep_loop::taken_find:
      return fork_deep(false, depth, count);
    case deep_loop::below_block: {
      auto work = [count] { return fork_deep(true, 1, count); };
      return descend(depth, work);
    }
    case deep_loop::taken_copy:
      return copy_frames(depth, count);
  }
  return 0;
}

std::optional<deep_loop> deep_loop_named(std::string_view name) {
  constexpr std::array names{"taken.block", "taken.find", "below.block", "taken.copy"};
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<deep_loop>(found - names.begin());
}

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
    loop{"list_plain", [](word count) { return traverse_often<kernels::plain>(count); }},
    loop{"list_fork", [](word count) { return traverse_often<by_fork>(count); }},
    loop{"cc",
         [](word count) {
           word sum = 0;
           for (word i = 0; i < count; ++i) sum += call_cc(increment_cc, i);
           return sum;
         }},
    loop{"ready", find<take>},
    loop{"blocked", wait_for<take>},
    loop{"cc_blocked", reply_later<child_of_cc<keep_answer>>},
};

using numbered = word (*)(word which, word count);
word run_loop(word which, word count) { return loops[which].run(count); }

struct caller {
  const char* name;
  numbered run;
};
/// In whose frames a loop runs: of a child that has been set aside before, and goes on in a context
/// of its own; of a function that never waits, one that may, and one that takes a continuation.
const std::array callers{
    caller{"parallel",
           [](word which, word count) {
             return fork(
                        [](word w, word n) {
                          yield();
                          return run_loop(w, n);
                        },
                        which, count)
                 .get();
           }},
    caller{"nb", [](word which, word count) { return nonblocking(run_loop)(which, count); }},
    caller{"mb", [](word which, word count) { return fork(run_loop, which, count).get(); }},
    caller{"cp",
           [](word which, word count) {
             return call_cc(
                 [](continuation<word> answer, word w, word n) { answer(run_loop(w, n)); }, which,
                 count);
           }},
};

/// The loop and, before a dot, its caller; without one main's fiber calls.
bool find_loop(std::string_view name, numbered& run, word& which) {
  const auto by_name = [](const auto& table, std::string_view wanted) {
    return std::find_if(table.begin(), table.end(),
                        [&](const auto& each) { return wanted == each.name; });
  };
  run = run_loop;
  if (const auto dot = name.find('.'); dot != name.npos) {
    const auto in = by_name(callers, name.substr(0, dot));
    if (in == callers.end()) return false;
    run = in->run;
    name.remove_prefix(dot + 1);
  }
  const auto found = by_name(loops, name);
  which = static_cast<word>(found - loops.begin());
  return found != loops.end();
}

/// The driver has callgrind count from the entry of one to the entry of the other.
extern "C" BENCH_OPAQUE void counting_begins() { bench::touch(nullptr); }
extern "C" BENCH_OPAQUE void counting_ends() { bench::touch(nullptr); }

void fill_slot(word i) { std::tie(slot_answers[i], slots[i]) = make_continuation<word>(); }

// ---- Forks alone, without what comes after them ------------------------------------------------

/// What is forked, for what comes later and for what is there.
struct fork_kind {
  const char* name;
  future<word> (*waits)(word slot);
  future<word> (*finds)(word slot);
  bool replies;  ///< What comes later is its own answer; otherwise it replies with one more.
  word adds;     ///< What the frames between add to it.
};

template <word (*Child)(future<word>*)>
future<word> fork_taker(word slot) {
  return fork(Child, &slots[slot]);
}
template <word (*Child)(word)>
future<word> fork_replier(word slot) {
  return fork([](word s) { return Child(s); }, slot);
}
template <word (*Child)(future<word>*)>
constexpr fork_kind taking(const char* name, word adds) {
  return {name, fork_taker<Child>, fork_taker<Child>, false, adds};
}
template <word (*Waiting)(word), word (*Replying)(word)>
constexpr fork_kind replying(const char* name, word adds) {
  return {name, fork_replier<Waiting>, fork_replier<Replying>, true, adds};
}

const std::array fork_kinds{
    taking<take>("mb", 0),
    taking<take_below>("mb_mb", 1),
    taking<take_forked>("mb_mb_forked", 1),
    taking<take_below_cc>("cp_mb", 1),
    replying<child_of_cc<keep_answer>, child_of_cc<increment_cc>>("cp", 0),
    replying<cc_below<keep_answer>, cc_below<increment_cc>>("mb_cp", 1),
    replying<cc_below_cc<keep_answer>, cc_below_cc<increment_cc>>("cp_cp", 1),
};

/// Forks them all, and then answers and joins them: twice, the first time for the memory that it
/// takes. False when a sum is wrong.
bool count_forks(const fork_kind& kind, bool waits, word count) {
  std::vector<future<word>> children(count);
  const auto fork_one = waits ? kind.waits : kind.finds;
  const word added = kind.adds + (kind.replies && !waits ? 1 : 0);
  for (const bool counted : {false, true}) {
    for (word i = 0; i < count && !kind.replies; ++i) {
      fill_slot(i);
      if (!waits) slot_answers[i](i);
    }
    if (counted) counting_begins();
    for (word i = 0; i < count; ++i) children[i] = fork_one(i);
    if (counted) counting_ends();
    for (word i = 0; i < count && waits; ++i) slot_answers[i](i);
    word sum = 0;
    for (future<word>& each : children) sum += each.get();
    if (sum != count * (count - 1) / 2 + count * added) return false;
  }
  return true;
}

// ---- Requests from the message buffer ----------------------------------------------------------

/// They stay in the rank's own queue until it looks there: more do not fit.
constexpr word requests_max = slots_max;

word take_slot(word i) { return slots[i].get() + 1; }
void answer_slot(word i) { slot_answers[i](i); }
void forward_cc(continuation<word> answer, word value) {
  rpc_ff(rank_me(), increment_cc, std::move(answer), value);
}

word tallied = 0;
BENCH_OPAQUE void tally(word i) { tallied += i + 1; }

struct request {
  const char* name;
  void (*send)(rank_t me, word i, future<word>& answer);
  bool bundled = false;
};
/// A rank's requests to itself lie in a queue as another rank's do in its ring, and the same code
/// handles them. Two requests an iteration where one answers what the other takes, or one forwards
/// to the other. Those without an answer add to `tallied`.
const std::array requests{
    request{"nonblocking",
            [](rank_t me, word i, future<word>& answer) {
              answer = rpc(me, nonblocking(increment), i);
            }},
    request{"may_block", [](rank_t me, word i,
                            future<word>& answer) { answer = rpc(me, increment_or_wait, i); }},
    request{"found",
            [](rank_t me, word i, future<word>& answer) {
              fill_slot(i);
              rpc_ff(me, answer_slot, i);
              answer = rpc(me, take_slot, i);
            }},
    request{"waited",
            [](rank_t me, word i, future<word>& answer) {
              fill_slot(i);
              answer = rpc(me, take_slot, i);
              rpc_ff(me, answer_slot, i);
            }},
    request{"cc",
            [](rank_t me, word i, future<word>& answer) { answer = rpc_cc(me, increment_cc, i); }},
    request{"forwarded",
            [](rank_t me, word i, future<word>& answer) { answer = rpc_cc(me, forward_cc, i); }},
    request{"one_way", [](rank_t me, word i, future<word>&) { rpc_ff(me, nonblocking(tally), i); }},
    request{"bundled_nonblocking",
            [](rank_t me, word i, future<word>&) { rpc_ff(me, nonblocking(tally), i); }, true},
    request{"bundled_may_block", [](rank_t me, word i, future<word>&) { rpc_ff(me, tally, i); },
            true},
};

/// Sends them all, and then looks at them. False when an answer is wrong.
bool handle_requests(const request& kind, word count) {
  std::vector<future<word>> answers(count);
  tallied = 0;
  {
    std::optional<aggregated> in_one_bundle;
    if (kind.bundled)
      in_one_bundle.emplace(aggregation{.bytes = 16384, .age = std::chrono::hours(1)});
    for (word i = 0; i < count; ++i) kind.send(rank_me(), i, answers[i]);
  }
  auto last = rpc(rank_me(), increment, 0UL);
  counting_begins();
  last.wait();
  // One that was forwarded comes after the last one.
  if (answers.back().valid()) answers.back().wait();
  counting_ends();
  word sum = tallied;
  for (future<word>& each : answers) {
    if (each.valid()) sum += each.get();
  }
  return sum == count * (count + 1) / 2;
}

bench::figures measure(const bench::command& next) {
  if (next.operation == "forward") {
    return kernels::time_way<by_fork>(
        "list", next.plan, [](const kernels::node* first) { return call_cc(forward, first, 0L); });
  }
  if (auto found = kernels::time_way<by_fork>(next.operation, next.plan)) return found;
  std::string_view name = next.operation;
  const auto takes_prefix = [&](std::string_view prefix) {
    if (!name.starts_with(prefix)) return false;
    name.remove_prefix(prefix.size());
    return true;
  };
  if (const bool waits = takes_prefix("waits."); waits || takes_prefix("finds.")) {
    if (next.plan.iterations < 1 || next.plan.iterations > slots_max) return std::nullopt;
    for (const fork_kind& kind : fork_kinds) {
      if (name == kind.name && count_forks(kind, waits, next.plan.iterations)) {
        return std::vector{0.0};
      }
    }
    return std::nullopt;
  }
  if (takes_prefix("request.")) {
    if (next.plan.iterations < 1 || next.plan.iterations > requests_max) return std::nullopt;
    for (const request& kind : requests) {
      if (name == kind.name && handle_requests(kind, next.plan.iterations)) return std::vector{0.0};
    }
    return std::nullopt;
  }
  const bool counted = takes_prefix("count.");
  const std::optional<deep_loop> deep = deep_loop_named(name);
  numbered chosen = run_loop;
  word which = 0;
  if (!deep && !find_loop(name, chosen, which)) return std::nullopt;
  const auto run = [&](word iterations) {
    const word sum =
        deep ? run_deep(*deep, next.plan.bytes, iterations) : chosen(which, iterations);
    bench::touch(&sum);
  };
  if (!counted) return bench::time_batches(next.plan, run);
  run(next.plan.iterations);
  return std::vector{0.0};
}

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "fib");
  // All but fib, of which two ranks do the half each, is of one rank: children count on its
  // variables, and another rank, without work, would take some away.
  if (options.operation != "fib") setenv("SOJOURN_STEAL", "off", 1);
  return run(argc, argv, [&]() -> int {
    const int status = rank_me() == 0 ? bench::lead("bench_hybrid", options, measure) : 0;
    barrier();
    return status;
  });
}
