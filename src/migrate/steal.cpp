// SPDX-License-Identifier: Apache-2.0
#include "migrate/steal.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "base/check.hpp"
#include "fiber/forks.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/stack_copy.hpp"
#include "fiber/ticket_table.hpp"
#include "memory/runtime_resource.hpp"
#include "message/dispatcher.hpp"
#include "message/programs.hpp"
#include "migrate/reading.hpp"
#include "migrate/scan.hpp"
#include "migrate/ship.hpp"
#include "migrate/stale_report.hpp"
#include "migrate/stretch_scan.hpp"
#include "sojourn/clock.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

// Forks that find nothing to give double the number of those that do not look.
constexpr unsigned passed_over_max = 1023;
constexpr std::size_t bits = 64;

struct {
  counts_page& (*page_of)(int rank) = nullptr;
  bool* forks = nullptr;  // of each other rank: it has told that it forks
  int forking = 0;        // how many
  bool hungry = false;    // this rank has shown it
  unsigned passed_over = 0;
  unsigned to_pass_over = 0;
  std::minstd_rand random;
} state;

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

std::atomic_ref<std::uint64_t> hunger_of(int rank, counts_page& at) {
  return std::atomic_ref(at.hungry[static_cast<std::size_t>(rank) / bits]);
}
constexpr std::uint64_t bit_of(int rank) {
  return std::uint64_t{1} << static_cast<std::size_t>(rank) % bits;
}

// ---- of the rank that has nothing to do ---------------------------------------------------------

void show_hunger(bool hungry) {
  // What runs next on this rank is no continuation of what forked before.
  if (!hungry) std::atomic_ref(counts.at_forks).fetch_or(at_fork::tidy);
  if (hungry == state.hungry || state.forking == 0) return;
  state.hungry = hungry;
  for (int r = 0; r < job.count; ++r) {
    if (!state.forks[r]) continue;
    counts_page& there = state.page_of(r);
    if (hungry) {
      hunger_of(job.me, there).fetch_or(bit_of(job.me));
      std::atomic_ref(there.at_forks).fetch_or(at_fork::hungry);
    } else {
      hunger_of(job.me, there).fetch_and(~bit_of(job.me));
    }
  }
}

void on_forks_here(arrival& a) {
  const int from = a.source;
  wire().consume(a);
  state.forking += !std::exchange(state.forks[from], true);
}

// ---- of the rank that forks ---------------------------------------------------------------------

/// Frames older than the fork `younger` and younger than `older`, null for the end of the piece.
struct stretch {
  mark* younger;
  mark* older;
};

/// What the end of the running piece allows.
bool may_leave_whole(const piece* p) {
  return p->base != nullptr && !p->pinned && !p->by_reference && !p->keeps_slot &&
         !p->is_thread_base();
}

leaving_frames frames_of(const piece* p, const stretch& s) {
  // What an absent mark is part of cannot be asked; nobody but the runtime has addresses of it.
  constexpr std::size_t about_a_frame = 256;
  const mark* older = s.older;
  const std::uint64_t end = address_of(older != nullptr ? older : p->base) + sizeof(mark);
  const std::size_t behind =
      older != nullptr
          ? (older->argument_words() + older->unwritten_words()) * sizeof(std::uint64_t)
          : about_a_frame;
  return {.low = address_of(s.younger->sp),
          .high = older != nullptr ? address_of(older->sp) : p->hi,
          .younger = s.younger,
          .older = address_of(older != nullptr ? older : p->base),
          .older_end = end + behind,
          .thread_has_heap = p->thread != 0 && has_heap(p)};
}

/// True when nothing in these frames of the running piece keeps them here. (The gate of ship.hpp is
/// of suspended pieces and what is younger than a mark; this has a younger end, too.)
bool is_clean(const piece* p, const stretch& s) {
  if (s.younger->events & mark::saved_exceptions) return false;
  if (method_depth(*s.younger) != (s.older != nullptr ? method_depth(*s.older) : p->base_methods)) {
    return false;
  }
  const std::uint64_t low = address_of(s.younger->sp);
  const std::uint64_t high = s.older != nullptr ? address_of(s.older->sp) : p->hi;
  for (const hold* h = running.holds; h != nullptr && address_of(h) < high; h = h->outer) {
    if (address_of(h) >= low) return false;
  }
  for (const referrer* child = p->referrers; child != nullptr; child = child->next_referrer) {
    if (refers_below(child, s.younger)) continue;
    if (s.older == nullptr || refers_below(child, s.older)) return false;
  }
  const word_that_stays found = find_word_that_stays(frames_of(p, s));
  if (found.what == stays_with::nothing) return true;
  ++counts.steals_refused;
  report_refused_steal(found, low, high);
  return false;
}

/// The oldest stretch of the running piece that may leave; its `younger` is null when there is
/// none.
stretch choose(const piece* p) {
  static std::vector<stretch> candidates;
  candidates.clear();
  if (running.static_inits != 0 || running.mutexes != nullptr) return {};
  if (p->scope != nullptr && scopes_on_wire.available(p->scope) == 0) return {};
  for (mark* m = running.youngest; m != nullptr && address_of(m) < p->hi;) {
    mark* older = older_mark(p, m);
    if (m->kind == mark_kind::fork &&
        (older != nullptr ? may_travel(older->kind) : may_leave_whole(p))) {
      candidates.push_back({m, older});
    }
    m = older;
  }
  for (auto s = candidates.rbegin(); s != candidates.rend(); ++s) {
    if (is_clean(p, *s)) return *s;
  }
  return {};
}

struct gift {
  stretch what;
  int to;
};

/// Runs below the frames of the fiber, which goes on when this returns.
long give(std::uint64_t context, std::uint64_t, std::uint64_t sp) {
  const gift g = *reinterpret_cast<const gift*>(context);
  piece* p = suspend_running(sp);
  piece* runs = cut(p, g.what.younger);
  mark* older = g.what.older;
  piece* given = older != nullptr ? cut(p, older) : p;
  const ticket_id result = given->result;
  ++counts.steals;
  send_whole(given, g.to);
  if (older != nullptr && is_fork(older->kind)) {
    make_ready(p, 1);
  } else if (older != nullptr) {
    piece* waiter = find_ticket(result)->waiter = block(p);
    waiter->since = ticks();
    waiter->waits = wait_cause::ticket;
    waiter->waits_for = result;
  }
  go_on(runs);
  return 1;
}

/// One that is hungry, by chance; or no_rank.
int someone_hungry() {
  const int first = static_cast<int>(state.random() % static_cast<unsigned>(job.count));
  for (int i = 0; i < job.count; ++i) {
    const int r = (first + i) % job.count;
    if ((hunger_of(r, counts).load() & bit_of(r)) != 0 && !is_lost(r)) return r;
  }
  return no_rank;
}

/// True when it looked at frames.
bool serve() {
  if (state.to_pass_over != 0) {
    --state.to_pass_over;
    return false;
  }
  // First: who shows its hunger meanwhile sets it again.
  std::atomic_ref(counts.at_forks).fetch_and(~at_fork::hungry);
  const int to = someone_hungry();
  if (to == no_rank) return false;
  if (const gift g{choose(running_piece()), to}; g.what.younger != nullptr) {
    capture_stack(give, address_of(&g), 0);
    hunger_of(to, counts).fetch_and(~bit_of(to));
    state.passed_over = 0;
  } else {
    state.passed_over = std::min(2 * state.passed_over + 1, passed_over_max);
    state.to_pass_over = state.passed_over;
  }
  if (someone_hungry() != no_rank) std::atomic_ref(counts.at_forks).fetch_or(at_fork::hungry);
  return true;
}

void tell_that_this_rank_forks() {
  std::atomic_ref(counts.at_forks).fetch_and(~at_fork::first);
  for (int r = 0; r < job.count; ++r) {
    if (r == job.me || runs_other_program(r) || is_lost(r)) continue;
    send_reply(r, runtime_message::forks_here, 0, 0, nullptr, 0);
  }
}

/// Clears the stack of what earlier calls have left there, where the frames of a tree of children
/// are about to lie: dead addresses among words that the frames have not written yet would keep
/// them here. Also of what the look itself has left.
void tidy_stack(bool looked) {
  constexpr std::size_t of_a_look = 32 << 10;
  constexpr std::uint64_t pause_ns = 1'000'000;
  static std::uint64_t tidied_ns = 0;
  const mark* m = running.youngest;
  const bool begins_a_tree =
      m == nullptr || m->kind != mark_kind::fork || address_of(m) > running_piece()->hi;
  if ((counts.at_forks & at_fork::tidy) != 0) {
    std::atomic_ref(counts.at_forks).fetch_and(~at_fork::tidy);
  }
  if (begins_a_tree && now_ns() - tidied_ns >= pause_ns) {
    clear_used_stack_below();
    tidied_ns = now_ns();
  } else if (looked) {
    clear_stack_below(of_a_look);
  }
}

void look_at_fork() {
  if (running_piece() == nullptr) return;  // a handler that may not wait
  if ((counts.at_forks & at_fork::first) != 0) tell_that_this_rank_forks();
  const bool looks = (counts.at_forks & at_fork::hungry) != 0 && serve();
  tidy_stack(looks);
}

bool is_wanted() {
  const char* text = std::getenv("SOJOURN_STEAL");
  if (text == nullptr || *text == 0) {
    // Frames cannot be looked at for addresses of this rank in the first; checked mode says where
    // each stretch leaves, which a fork does not.
    return !SOJOURN_ASAN && !checked() && scan_is_enabled();
  }
  if (std::strcmp(text, "on") == 0) return true;
  if (std::strcmp(text, "off") == 0) return false;
  throw error(format("SOJOURN_STEAL=%s is neither on nor off", text));
}

}  // namespace

void attach_steal(counts_page& (*page_of)(int rank)) {
  const bool wanted = is_wanted();
  attach_stale_report();
  state.page_of = page_of;
  state.forks = runtime_array<bool>(static_cast<std::size_t>(job.count));
  state.random.seed(static_cast<unsigned>(job.me) + 1);
  on_message(runtime_message::forks_here, on_forks_here);
  if (!wanted || job.count == 1 || !children_run_in_place()) return;
  on_fork = look_at_fork;
  call_when_idle(show_hunger);
  std::atomic_ref(counts.at_forks).fetch_or(at_fork::first | at_fork::tidy);
}

}  // namespace sojourn::detail
