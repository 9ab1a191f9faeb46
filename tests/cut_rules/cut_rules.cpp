// SPDX-License-Identifier: Apache-2.0
// Random programs against a serial evaluation of the same: the rules of cutting stacks and putting
// them back, all at once. Each rank runs many programs concurrently. With --break RULE, which
// job_cut_rules_broken takes, one rule is broken on purpose, and the run must fail (broken.sh).
#include "exceptions.hpp"
#include "features.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <deque>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "break_rule.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/ticket_table.hpp"
#include "memory/stack_slots.hpp"
#include "settings.hpp"

SOJOURN_EXCEPTION(cut_rules::program_error);

namespace cut_rules {

// Weak: a program that has break_rule.cpp, too, takes the one there.
[[gnu::weak]] bool break_rule(std::string_view) { return false; }

namespace {

[[noreturn]] void usage(const char* word) {
  std::fprintf(stderr,
               "cut_rules: %s is not an option; they are --seed N, --programs N (of each rank), "
               "--concurrent N, --depth N, --skip MASK, --limit SECONDS, --break RULE\n",
               word);
  std::exit(2);
}

void parse(int argc, char** argv) {
  settings.program = argv[0];
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (i + 1 == argc) usage(argv[i]);
    const char* text = argv[i + 1];
    const u64 number = std::strtoull(text, nullptr, 0);
    if (name == "--seed") {
      settings.seed = number;
    } else if (name == "--programs") {
      settings.programs = number;
    } else if (name == "--concurrent") {
      settings.concurrent = number == 0 ? 1 : number;
    } else if (name == "--depth") {
      settings.depth = number;
    } else if (name == "--skip") {
      settings.skip = number;
    } else if (name == "--limit") {
      settings.limit_s = static_cast<unsigned>(number);
    } else if (name == "--break") {
      settings.broken_rule = text;
      if (!break_rule(text)) usage(text);
    } else {
      usage(argv[i]);
    }
  }
}

u64 most_pieces = 0;  // at once on this rank

/// A program: the root of a tree of computations. May move with all its frames.
u64 root(u64 number, u64 depth) {
  const u64 seed = hash(number);
  most_pieces = std::max<u64>(most_pieces, sojourn::detail::fibers_unfinished());
  volatile u64 locals[8];
  for (u64 i = 0; i < 8; ++i) locals[i] = number + i;
  const u64 real = outcome_of([&] {
                     if (number % 2 == 0) return node<true>(seed, depth, {});
                     return sojourn::activate(node<true>, seed, depth, sojourn::this_activation());
                   }).value;
  for (u64 i = 0; i < 8; ++i) {
    if (locals[i] != number + i) fail(seed, "a root's locals changed");
  }
  const u64 serial = outcome_of([&] { return node<false>(seed, depth, {}); }).value;
  if (real != serial)
    fail(seed, "program %llu comes to another value than its serial evaluation",
         static_cast<unsigned long long>(number));
  return number;
}

/// Programs started and not yet seen to end, for the report of a run that hangs.
std::deque<u64> started;

void give_up(int) {
  char text[160];
  int n = std::snprintf(text, sizeof text,
                        "cut_rules: rank %d: gave up after %u s; oldest unfinished program %llu, "
                        "%zu tickets, %zu pieces\n",
                        sojourn::rank_me(), settings.limit_s,
                        started.empty() ? 0ull : static_cast<unsigned long long>(started.front()),
                        sojourn::detail::tickets_open(), sojourn::detail::fibers_unfinished());
  if (n > 0) (void)!write(2, text, static_cast<std::size_t>(n));
  _exit(3);
}

void run_programs() {
  std::deque<sojourn::future<u64>> futures;
  auto join_oldest = [&] {
    const u64 number = futures.front().get();
    if (number != started.front()) fail(number, "a program returned another's result");
    futures.pop_front();
    started.pop_front();
  };
  const auto ranks = static_cast<u64>(sojourn::rank_count());
  for (u64 i = 0; i < settings.programs; ++i) {
    const u64 number = settings.seed + i * ranks + static_cast<u64>(sojourn::rank_me());
    const bool full = futures.size() == settings.concurrent;
    if (full) join_oldest();
    if (full && i % 16 == 15) {
      root(number, settings.depth);  // in the main fiber, which never moves itself
      continue;
    }
    started.push_back(number);
    futures.push_back(sojourn::rpc(sojourn::rank_me(), root, number, settings.depth));
  }
  while (!futures.empty()) join_oldest();
}

/// Children that nobody joined end by themselves; then nothing is left on any rank.
void expect_nothing_left() {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    for (int i = 0; i < 20; ++i) sojourn::yield();
    const u64 pieces = sojourn::detail::fibers_unfinished() - 1;  // this one is main
    const u64 tickets = sojourn::detail::tickets_open();
    if (sojourn::reduce(pieces + tickets, std::plus<>{}) == 0) return;
    const bool late = std::chrono::steady_clock::now() - begin > std::chrono::seconds(10);
    if (sojourn::reduce(static_cast<u64>(late), std::plus<>{}) != 0) {
      fail(0, "%llu tickets and %llu pieces are left after all programs have ended",
           static_cast<unsigned long long>(tickets), static_cast<unsigned long long>(pieces));
    }
  }
}

/// All this must have happened, or the run says little.
void report_events(const sojourn::counters& c) {
  struct line {
    const char* name;
    u64 count;
    bool needs_ranks;
  };
  std::vector<line> lines = {
      {"cuts", c.cuts, false},
      {"images out", c.images_out, false},
      {"images in", c.images_in, false},
      {"migrations", c.migrations, true},
      {"migrations refused", c.migrations_refused, true},
      {"exceptions sent", c.exceptions_sent, false},
      {"fibers made", c.fibers_made, false},
  };
  for (std::size_t i = 0; i < event_count; ++i) {
    const auto e = static_cast<event>(i);
    const bool alone = e == event::fork_went_on || e == event::fork_by_reference_went_on ||
                       e == event::fork_returned || e == event::exception_by_ticket ||
                       e == event::waited_in_handler || e == event::waited_in_unwinding ||
                       e == event::wrote_to_ancestor || e == event::finished_scope ||
                       e == event::joined_thread;
    lines.push_back({event_names[i], events[i], !alone});
  }
  const u64 shared_stacks = most_pieces > sojourn::detail::slots.fibers_max();
  if (settings.concurrent > sojourn::detail::slots.fibers_max()) {
    lines.push_back({"ranks with stacks shared by fibers", shared_stacks, false});
  }
  const bool enough = settings.programs * static_cast<u64>(sojourn::rank_count()) >= 100 &&
                      settings.depth >= 3 && settings.skip == 0;
  for (const line& l : lines) {
    const u64 sum = sojourn::reduce(l.count, std::plus<>{});
    if (sojourn::rank_me() != 0) continue;
    std::printf("%-34s %llu\n", l.name, static_cast<unsigned long long>(sum));
    if (sum == 0 && enough && (!l.needs_ranks || sojourn::rank_count() > 1)) {
      fail(0, "no program met this: %s", l.name);
    }
  }
}

int body() {
  const auto me = sojourn::rank_me();
  const auto mine = sojourn::make<cell>(me, salt_of(me));
  const auto all = sojourn::all_gather(mine);
  for (std::size_t i = 0; i < all.size(); ++i) cells[i] = all[i];
  sojourn::barrier();
  const auto before = sojourn::counters_now();
  auto collectives = sojourn::fork([] { check_collectives(100); });
  run_programs();
  collectives.get();
  sojourn::barrier();
  if (small_calls != 0) fail(0, "a finish has returned before all small calls in it had run");
  expect_nothing_left();
  report_events(sojourn::counters_now() - before);
  sojourn::barrier();
  sojourn::destroy(mine);
  return 0;
}

}  // namespace
}  // namespace cut_rules

int main(int argc, char** argv) {
  using namespace cut_rules;
  parse(argc, argv);
  if (settings.limit_s != 0) {
    std::signal(SIGALRM, give_up);
    alarm(settings.limit_s);
  }
  return sojourn::run(argc, argv, body);
}
