// SPDX-License-Identifier: Apache-2.0
//
// What shared memory costs, one batch at a time as the driver commands.
//
//   cpus            the cores that the ranks run on
//   fault           load of a byte of a page that rank 1 has stored to and rank 2 has loaded,
//                   so that rank 1 has it open for loads alone. `iterations` pages in order; how
//                   many come together is said by SOJOURN_SHARED_FETCH. From 3 ranks on
//   fault_own       the same of pages that nobody has loaded: rank 1 must protect them first
//   call            round trip of a call that brings 4 KiB of rank 1, copied into a buffer
//   null            round trip of a call without arguments or result, of rank 0 to rank 1
//   null_pairs      the same, mean of all pairs of ranks
//   lock2, lock3    lock and unlock of a mutex that another rank held last, where that takes two or
//                   three messages. lock3 from 3 ranks on
//   lock_computing  lock of a mutex whose last holder has computed for a millisecond, and goes
//                   on for nine
//   barrier         one shared::barrier() of the main fibers of all ranks
//   barrier_words   the same after each rank has stored a word to a page that two ranks share
//   barrier_bytes   of such a barrier: the most bytes that a rank sends
//
// Commands arrive at rank 0, which sleeps in read() between them, and are broadcast. With --cpus,
// rank r is pinned to the core r of these, which go round.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <sojourn/sojourn.hpp>

#include "common/command_channel.hpp"

namespace {

using namespace sojourn;

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t pages_max = 4096;
constexpr std::size_t locks_of_a_batch = 32;
constexpr std::size_t mutexes = 512;
using block = std::array<std::byte, page_bytes>;

struct alignas(64) padded_mutex {
  shared::mutex mutex;
};

// The same on all ranks, from the start on.
volatile unsigned char* pages = nullptr;
padded_mutex* locks = nullptr;

/// Of each rank's user: what `call` brings, and where to.
std::vector<block> blocks;
block received;

unsigned char stores = 0;  ///< How often rank 1 has stored to the pages, and so what is there.

void allocate_all() {
  shared::pointer<unsigned char> at_pages = nullptr;
  shared::pointer<padded_mutex> at_locks = nullptr;
  if (rank_me() == 1 % rank_count()) {
    at_pages = static_cast<unsigned char*>(shared::allocate(pages_max * page_bytes, page_bytes));
    at_locks = static_cast<padded_mutex*>(
        shared::allocate(mutexes * sizeof(padded_mutex), alignof(padded_mutex)));
  }
  pages = broadcast(at_pages, 1 % rank_count()).get();
  locks = broadcast(at_locks, 1 % rank_count()).get();
  blocks.resize(pages_max);
  std::memset(blocks.data(), 7, blocks.size() * page_bytes);
}

void wait_in_place(std::uint64_t ns) {
  const std::uint64_t end = bench::clock_ns() + ns;
  while (bench::clock_ns() < end) bench::touch(&end);
}

// ---- Faults: all ranks take part ----------------------------------------------------------------

std::size_t pages_of(const bench::batch_plan& plan) {
  return std::min<std::size_t>(plan.iterations, pages_max);
}

/// Rank 1 alone has the pages afterwards, or `shown` also rank 2.
void make_pages_clean(std::size_t count, bool shown) {
  ++stores;
  if (rank_me() == 1) {
    for (std::size_t p = 0; p < count; ++p) pages[p * page_bytes] = stores;
  }
  shared::barrier();
  if (shown && rank_me() == 2) {
    for (std::size_t p = 0; p < count; ++p) (void)pages[p * page_bytes];
  }
  shared::barrier();
}

double time_loads(std::size_t count) {
  // The ranks that take no part fall asleep meanwhile.
  wait_in_place(3'000'000);
  unsigned wrong = 0;
  const std::uint64_t start_ns = bench::clock_ns();
  for (std::size_t p = 0; p < count; ++p) wrong += pages[p * page_bytes] != stores ? 1 : 0;
  const std::uint64_t end_ns = bench::clock_ns();
  if (wrong != 0) throw std::runtime_error("a page that was fetched has an old value");
  return static_cast<double>(end_ns - start_ns) / static_cast<double>(count);
}

std::vector<double> faults(const bench::batch_plan& plan, bool shown) {
  const std::size_t count = pages_of(plan);
  std::vector<double> found;
  // The first round is not counted: it makes the pages' memory.
  for (std::uint64_t round = 0; round <= plan.repeats; ++round) {
    make_pages_clean(count, shown);
    const double ns = rank_me() == 0 ? time_loads(count) : 0;
    if (round != 0) found.push_back(ns);
    shared::barrier();
  }
  return found;
}

// ---- Barriers: all ranks take part --------------------------------------------------------------

std::vector<double> barriers(const bench::batch_plan& plan) {
  return bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) shared::barrier();
  });
}

void store_words_and_meet(std::uint64_t times) {
  const auto me = static_cast<std::size_t>(rank_me());
  volatile unsigned char* const mine = &pages[me / 2 * page_bytes + me % 2 * sizeof(long)];
  for (std::uint64_t i = 0; i < times; ++i) {
    *mine = static_cast<unsigned char>(*mine + 1);
    shared::barrier();
  }
}

std::vector<double> barriers_after_stores(const bench::batch_plan& plan) {
  return bench::time_batches(plan, store_words_and_meet);
}

std::vector<double> bytes_of_barriers(const bench::batch_plan& plan) {
  store_words_and_meet(4);
  const std::uint64_t before = shared::counters_now().barrier_message_bytes;
  store_words_and_meet(plan.iterations);
  const auto sent = static_cast<double>(shared::counters_now().barrier_message_bytes - before);
  const double most = reduce(sent, [](double a, double b) { return std::max(a, b); });
  return {most / static_cast<double>(plan.iterations)};
}

// ---- Calls and locks: rank 0, while the other main fibers wait ----------------------------------

void call_nothing(rank_t to) {
  rpc(to, [] {}).get();
}

std::vector<double> null_calls(const bench::batch_plan& plan) {
  return bench::time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) call_nothing(1);
  });
}

/// One batch after the other of each pair, so that the third rank sleeps.
std::vector<double> null_calls_of_pairs(const bench::batch_plan& plan) {
  std::vector<double> sums(plan.repeats, 0.0);
  int pairs = 0;
  for (rank_t from = 0; from < rank_count(); ++from) {
    for (rank_t to = from + 1; to < rank_count(); ++to, ++pairs) {
      const std::vector<double> found =
          rpc(
              from,
              [](rank_t callee, std::uint64_t iterations, std::uint64_t repeats) {
                return bench::time_batches({.iterations = iterations, .repeats = repeats},
                                           [callee](std::uint64_t count) {
                                             for (std::uint64_t i = 0; i < count; ++i)
                                               call_nothing(callee);
                                           });
              },
              to, plan.iterations, plan.repeats)
              .get();
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += found[i];
    }
  }
  for (double& sum : sums) sum /= pairs;
  return sums;
}

std::vector<double> calls_with_a_page(const bench::batch_plan& plan) {
  std::uint32_t next = 0;
  auto found = bench::time_batches(plan, [&next](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      next = (next + 1) % static_cast<std::uint32_t>(pages_max);
      received = rpc(1, [](std::uint32_t at) { return blocks[at]; }, next).get();
      bench::touch(&received);
    }
  });
  if (received.back() != std::byte{7}) throw std::runtime_error("other bytes arrived than sent");
  return found;
}

void lock_and_unlock(std::size_t at) {
  locks[at].mutex.lock();
  locks[at].mutex.unlock();
}

void lock_there(rank_t there, const std::vector<std::uint32_t>& which) {
  rpc(
      there,
      [](const std::vector<std::uint32_t>& all) {
        for (const std::uint32_t at : all) lock_and_unlock(at);
      },
      which)
      .get();
}

std::uint64_t lock_messages_of_all() {
  std::uint64_t sum = 0;
  for (rank_t r = 0; r < rank_count(); ++r)
    sum += rpc(r, [] { return shared::counters_now().lock_messages; }).get();
  return sum;
}

/// Mutexes that take so many messages to come here from the last rank: that depends on who manages
/// them, which messages tell.
std::vector<std::uint32_t> locks_of_messages(std::uint64_t messages) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t at = 0; at < mutexes && found.size() < locks_of_a_batch; ++at) {
    lock_there(rank_count() - 1, {at});
    const std::uint64_t before = lock_messages_of_all();
    lock_and_unlock(at);
    if (lock_messages_of_all() - before == messages) found.push_back(at);
  }
  return found;
}

std::optional<std::vector<double>> remote_locks(const bench::batch_plan& plan,
                                                std::uint64_t messages) {
  const std::vector<std::uint32_t> which = locks_of_messages(messages);
  if (which.empty()) return std::nullopt;
  std::vector<double> found;
  for (std::uint64_t repeat = 0; repeat <= plan.repeats; ++repeat) {
    std::uint64_t sum_ns = 0;
    std::uint64_t count = 0;
    while (count < plan.iterations) {
      lock_there(rank_count() - 1, which);
      const std::uint64_t start_ns = bench::clock_ns();
      for (const std::uint32_t at : which) lock_and_unlock(at);
      sum_ns += bench::clock_ns() - start_ns;
      count += which.size();
    }
    if (repeat != 0) found.push_back(static_cast<double>(sum_ns) / static_cast<double>(count));
  }
  return found;
}

std::vector<double> locks_from_computing(const bench::batch_plan& plan) {
  std::vector<double> found;
  for (std::uint64_t repeat = 0; repeat < plan.repeats; ++repeat) {
    const rank_t there = rank_count() - 1;
    auto computed = rpc(there, [] {
      lock_and_unlock(0);
      wait_in_place(10'000'000);
    });
    wait_in_place(1'000'000);
    const std::uint64_t start_ns = bench::clock_ns();
    locks[0].mutex.lock();
    found.push_back(static_cast<double>(bench::clock_ns() - start_ns));
    locks[0].mutex.unlock();
    computed.get();
  }
  return found;
}

// ---- Commands -----------------------------------------------------------------------------------

enum class operation : std::uint8_t {
  cpus,
  fault,
  fault_own,
  call,
  null,
  null_pairs,
  lock2,
  lock3,
  lock_computing,
  barrier,
  barrier_words,
  barrier_bytes,
  quit
};
struct named_operation {
  std::string_view name;
  operation what;
  int ranks_min;
};
constexpr std::array<named_operation, 12> operations{{
    {"cpus", operation::cpus, 1},
    {"fault", operation::fault, 3},
    {"fault_own", operation::fault_own, 2},
    {"call", operation::call, 2},
    {"null", operation::null, 2},
    {"null_pairs", operation::null_pairs, 2},
    {"lock2", operation::lock2, 2},
    {"lock3", operation::lock3, 3},
    {"lock_computing", operation::lock_computing, 2},
    {"barrier", operation::barrier, 1},
    {"barrier_words", operation::barrier_words, 1},
    {"barrier_bytes", operation::barrier_bytes, 1},
}};

struct order {
  operation what = operation::quit;
  bench::batch_plan plan;
};

std::optional<operation> find(std::string_view name) {
  for (const named_operation& each : operations) {
    if (each.name == name && rank_count() >= each.ranks_min) return each.what;
  }
  return std::nullopt;
}

/// What all ranks do at the same time.
std::vector<double> together(const order& next) {
  switch (next.what) {
    case operation::fault:
      return faults(next.plan, true);
    case operation::fault_own:
      return faults(next.plan, false);
    case operation::barrier:
      return barriers(next.plan);
    case operation::barrier_words:
      return barriers_after_stores(next.plan);
    case operation::barrier_bytes:
      return bytes_of_barriers(next.plan);
    default:
      return {};
  }
}

std::optional<std::vector<double>> lead(const order& next) {
  switch (next.what) {
    case operation::cpus: {
      std::vector<double> all;
      for (rank_t r = 0; r < rank_count(); ++r)
        all.push_back(rpc(r, [] { return sched_getcpu(); }).get());
      return all;
    }
    case operation::call:
      return calls_with_a_page(next.plan);
    case operation::null:
      return null_calls(next.plan);
    case operation::null_pairs:
      return null_calls_of_pairs(next.plan);
    case operation::lock2:
      return remote_locks(next.plan, 2);
    case operation::lock3:
      return remote_locks(next.plan, 3);
    case operation::lock_computing:
      return locks_from_computing(next.plan);
    default:
      return together(next);
  }
}

/// An unknown command is refused, and the next one read.
order next_order(bench::command_channel& channel) {
  while (auto command = channel.next()) {
    if (const auto what = find(command->operation)) return {*what, command->plan};
    channel.refuse("bench_shared does not know this operation, or needs more ranks for it");
  }
  return {};
}

void serve_rank_0(const bench::process_options& options) {
  bench::command_channel channel(options, 0);
  for (;;) {
    const order next = broadcast(next_order(channel));
    if (next.what == operation::quit) return;
    if (const auto found = lead(next)) {
      channel.answer(*found);
    } else {
      channel.refuse("bench_shared found no mutex that takes so many messages");
    }
  }
}

void serve_others() {
  for (;;) {
    const order next = broadcast(order{});
    if (next.what == operation::quit) return;
    together(next);
  }
}

int measure_once(const bench::process_options& options) {
  const auto what = find(options.operation);
  const auto found = !what            ? std::nullopt
                     : rank_me() == 0 ? lead({*what, options.plan})
                                      : std::optional(together({*what, options.plan}));
  barrier();
  if (rank_me() != 0) return 0;
  if (!found) {
    std::fprintf(stderr, "bench_shared: no operation %s on %d ranks\n", options.operation.c_str(),
                 rank_count());
    return 2;
  }
  bench::print_samples("sojourn", options, *found);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::process_options options = bench::parse_options(argc, argv, "fault");
  return run(argc, argv, [&]() -> int {
    const auto core = static_cast<std::size_t>(rank_me()) % options.cpus.size();
    if (options.cpus_given && !bench::pin_to_cpu(options.cpus[core])) {
      std::perror("bench_shared: cannot pin to the core given with --cpus");
      return 2;
    }
    allocate_all();
    if (!options.commands.empty()) {
      if (rank_me() == 0)
        serve_rank_0(options);
      else
        serve_others();
      return 0;
    }
    return measure_once(options);
  });
}
