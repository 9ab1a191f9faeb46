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
#include "fiber/block.hpp"
#include "fiber/cut.hpp"
#include "fiber/fork_links.hpp"
#include "fiber/forks.hpp"
#include "fiber/hooks.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/stack_copy.hpp"
#include "fiber/ticket_waits.hpp"
#include "memory/runtime_resource.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "message/programs.hpp"
#include "migrate/gate.hpp"
#include "migrate/reading.hpp"
#include "migrate/scan/clear_stack.hpp"
#include "migrate/scan/scan.hpp"
#include "migrate/scan/stale_report.hpp"
#include "migrate/scan/stretch_scan.hpp"
#include "migrate/ship.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/rank.hpp"
#include "transport/neighbours.hpp"

namespace sojourn::detail {

namespace {

constexpr std::size_t bits = 64;

/// About so many ticks(). Nothing measured in them needs to be exact.
std::uint64_t ticks_of_us(std::uint64_t us) {
#if defined(__aarch64__)
  std::uint64_t a_second;
  asm("mrs %0, cntfrq_el0" : "=r"(a_second));
  return us * a_second / 1'000'000;
#else
  return us * 3000;
#endif
}

/// A pause after looks in vain, in time and not in forks, because the next fork may come at once or
/// after a long computation. Each pause is twice as long as the one before it, from `least` to
/// `most`.
struct pause {
  std::uint64_t until = 0;
  std::uint64_t length = 0;

  bool is_over(std::uint64_t now) const { return static_cast<std::int64_t>(now - until) >= 0; }
  void lengthen(std::uint64_t least, std::uint64_t most, std::uint64_t now) {
    length = std::clamp(2 * length, least, most);
    until = now + length;
  }
  void end() { length = 0; }
};
// Looks in vain take less than one part in so many of the time.
constexpr std::uint64_t part_of_looks = 16;
constexpr std::uint64_t pause_max_us = 1000;
// A child that ran for less time was not worth sending. After such a child none is given for a
// while.
constexpr std::uint64_t worth_giving_us = 10;
// The same for children sent to other hosts. To these, nothing is given for a while after a
// refusal, either.
constexpr std::uint64_t worth_giving_far_us = 100;
constexpr std::uint64_t pause_far_max_us = 10'000;

/// What this rank knows of another one.
struct forking_rank {
  bool forks = false;    ///< It has told that it forks.
  bool is_told = false;  ///< It is on another host, and remembers that this rank is hungry.
};

struct {
  forking_rank* ranks = nullptr;
  int forking = 0;                  // how many ranks have told that they fork
  bool far = false;                 // children go to ranks of other hosts, too
  bool hungry = false;              // this rank has shown that it is hungry
  bool was_too_small = false;       // the last child that this rank was given was too small
  pause of_stretches;               // after looks in vain for a stretch that may leave
  pause of_children;                // after children that were too small
  pause of_far;                     // for ranks of other hosts, after either
  bool gave_too_small = false;      // the last child that this rank gave was too small
  std::uint64_t no_look_until = 0;  // no look at all before this time
  std::minstd_rand random;
} state;

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

std::atomic_ref<std::uint64_t> hunger_of(int rank, counts_page& at) {
  return std::atomic_ref(at.hungry[static_cast<std::size_t>(rank) / bits]);
}
constexpr std::uint64_t bit_of(int rank) {
  return std::uint64_t{1} << static_cast<std::size_t>(rank) % bits;
}

// ---- on the rank that has nothing to do ---------------------------------------------------------

std::uint32_t hunger_shown() {
  return at_fork::hungry | (state.was_too_small ? at_fork::too_small : 0);
}

/// Tells a rank of another host.
void tell_of_hunger(int rank) {
  if (is_lost(rank) || std::exchange(state.ranks[rank].is_told, true)) return;
  const std::uint32_t shown = hunger_shown();
  send_reply(rank, runtime_message::hunger, 0, 0, &shown, sizeof shown);
}

void show_hunger(bool hungry) {
  // What runs next on this rank does not continue what forked before.
  if (!hungry) std::atomic_ref(counts.at_forks).fetch_or(at_fork::tidy);
  if (hungry == state.hungry || state.forking == 0) return;
  state.hungry = hungry;
  for (int r = 0; r < job.count; ++r) {
    if (!state.ranks[r].forks) continue;
    if (!is_near(r)) {
      if (hungry) tell_of_hunger(r);
      continue;
    }
    counts_page& there = near_ranks().counts_of(r);
    if (hungry) {
      hunger_of(job.me, there).fetch_or(bit_of(job.me));
      std::atomic_ref(there.at_forks).fetch_or(hunger_shown());
    } else {
      hunger_of(job.me, there).fetch_and(~bit_of(job.me));
    }
  }
  if (hungry) state.was_too_small = false;
}

void child_ends(std::uint64_t began) {
  if (began == 0) return;
  const bool came_from_far = (began & 1) != 0;
  state.was_too_small =
      ticks() - began < ticks_of_us(came_from_far ? worth_giving_far_us : worth_giving_us);
}

void on_forks_here(arrival& a) {
  const int from = a.source;
  wire().consume(a);
  forking_rank& rank = state.ranks[from];
  rank.is_told = false;
  state.forking += !std::exchange(rank.forks, true);
}

// ---- on the rank that forks ---------------------------------------------------------------------

/// The frames between two marks: older than the fork `younger`, and younger than `older`. If there
/// is no `older`, they extend to the end of the piece.
struct stretch {
  boundary younger;
  boundary older;
};

/// True when the frames that leave may include the oldest one of the running piece.
bool may_leave_whole(const piece* p) {
  return p->base != nullptr && !p->pinned && !p->by_reference && !p->keeps_slot &&
         !p->is_thread_base();
}

/// Describes the frames of the running piece, from `low` up to `older` (or to the end of the piece
/// when there is no `older`), that are to leave for the rank `to`.
leaving_frames frames_of(const piece* p, std::uint64_t low, const boundary& younger,
                         const boundary& older, int to) {
  const std::uint64_t older_at = older ? older.at : address_of(p->base);
  leaving_frames frames{.low = low,
                        .high = older ? older.end : p->hi,
                        .younger = younger.open,
                        .older = older_at,
                        .older_end = older_at,
                        .thread_has_heap = p->thread != 0 && has_heap(p),
                        .to_another_host = !is_near(to)};
  if (older.open != nullptr) {
    const std::size_t behind = older.open->argument_words() + older.open->unwritten_words();
    frames.older_end += sizeof(mark) + behind * sizeof(std::uint64_t);
  } else if (!older && p->called_from == 0) {
    // The mark is not on this rank, so the size of the frame that it lies in is unknown. (Nobody
    // but the runtime has addresses of that frame.)
    constexpr std::size_t about_a_frame = 256;
    frames.older_end += sizeof(mark) + about_a_frame;
  }
  const bool older_in_tables = older && older.open == nullptr;
  if (older_in_tables) {
    frames.of_older = older.older.registers;
    frames.link = link_of(older.at, low);
  }
  if (younger && younger.open == nullptr) {
    for (std::size_t i = 0; i < preserved_registers; ++i) {
      const std::uint64_t* const at = younger.older.registers[i];
      // A register that these frames have not saved still holds a value of the older side.
      if (!older_in_tables || at != older.older.registers[i]) frames.registers[i] = *at;
    }
  }
  return frames;
}

/// True when no word of these frames keeps them here.
bool has_no_word_that_stays(const leaving_frames& frames) {
  const word_that_stays found = find_word_that_stays(frames);
  if (found.what == stays_with::nothing) return true;
  ++counts.steals_refused;
  report_refused_steal(found, frames.low, frames.high);
  return false;
}

/// True when nothing may leave of the piece's finish scope: its weight is used up here, until it
/// has been given more; or it has a window. There, what leaves would take a place in the window,
/// and then wait for forks that are still here, which wait for such a place.
bool is_kept_by_scope(const piece* p) {
  return p->scope != nullptr && (static_cast<const scope_view*>(p->scope)->is_window ||
                                 on_dispatch.scopes.available(p->scope) == 0);
}

/// The oldest stretch that may leave of the running piece, whose youngest byte is at `sp`, for the
/// rank `to`. Without such a stretch, `younger` of the result is empty.
stretch choose(const piece* p, std::uint64_t sp, int to) {
  static std::vector<stretch> candidates;
  candidates.clear();
  if (running.static_inits != 0 || is_kept_by_scope(p)) return {};  // nothing may leave
  stretch next;
  for (boundaries each(p, sp);; ++each) {
    next.older = *each;
    if (next.younger && next.younger.kind == mark_kind::fork &&
        (next.older ? may_travel(next.older.kind) : may_leave_whole(p))) {
      candidates.push_back(next);
    }
    if (!each) break;
    next.younger = next.older;
  }
  for (auto s = candidates.rbegin(); s != candidates.rend(); ++s) {
    if (reason_stretch_stays(s->younger, s->older) != nullptr) continue;
    const leaving_frames frames = frames_of(p, s->younger.end, s->younger, s->older, to);
    // A rank of another host would ask for such long frames by message, and this rank may compute
    // for long before it answers.
    if (frames.to_another_host && frames.high - frames.low >= read_from_bytes) continue;
    if (has_no_word_that_stays(frames)) return *s;
  }
  return {};
}

void ask_for_hunger(int rank) { send_reply(rank, runtime_message::forks_here, 0, 0, nullptr, 0); }

/// Sends `given` to a hungry rank. True when it has left this rank.
bool feed(int to, piece* given) {
  ++counts.steals;
  const bool has_left = send_whole(given, to);
  if (!is_near(to)) ask_for_hunger(to);
  return has_left;
}

struct gift {
  int to;
  bool given;
};

/// Runs below the frames of the fiber, which goes on when this returns.
long give(std::uint64_t context, std::uint64_t, std::uint64_t sp) {
  gift& g = *reinterpret_cast<gift*>(context);
  const stretch what = choose(running_piece(), sp, g.to);
  if (!what.younger) return 0;
  g.given = true;
  piece* p = suspend_running(sp);
  // The older end is cut first. If the stretch has not saved some registers of the older side, the
  // frames that run on here have saved them.
  piece* given = what.older ? cut(p, what.older) : p;
  piece* runs = cut(given, what.younger);
  const ticket_id result = given->result;
  feed(g.to, given);
  if (what.older && is_fork(what.older.kind)) {
    make_ready(p, resumed::anywhere);
  } else if (what.older) {
    begin_wait(p, find_ticket(result));
  }
  go_on(runs);
  return 1;
}

/// A hungry rank of this host, chosen at random. If there is none, one of another host, unless the
/// pause for these lasts. Else no_rank.
int someone_hungry() {
  const int first = static_cast<int>(state.random() % static_cast<unsigned>(job.count));
  int far = no_rank;
  for (int i = 0; i < job.count; ++i) {
    const int r = (first + i) % job.count;
    if ((hunger_of(r, counts).load() & bit_of(r)) == 0 || is_lost(r)) continue;
    if (is_near(r)) return r;
    far = r;
  }
  return far != no_rank && state.of_far.is_over(ticks()) ? far : no_rank;
}

/// Gives nothing to ranks of other hosts for a while.
void pause_far() {
  state.of_far.lengthen(ticks_of_us(worth_giving_far_us), ticks_of_us(pause_far_max_us), ticks());
}

/// A hungry rank, or no_rank. Clears `at_fork::hungry` before it looks, because a rank that becomes
/// hungry meanwhile sets the flag again.
int take_hungry() {
  std::atomic_ref(counts.at_forks).fetch_and(~at_fork::hungry);
  return someone_hungry();
}
/// Sets `at_fork::hungry` again when some rank is still hungry.
void look_again() {
  if (someone_hungry() != no_rank) std::atomic_ref(counts.at_forks).fetch_or(at_fork::hungry);
}
void has_been_given(int to) { hunger_of(to, counts).fetch_and(~bit_of(to)); }

void on_hunger(arrival& a, const std::uint32_t& shown) {
  if (is_near(a.source) || takes_no_stacks(a.source)) {
    refuse_arrival(a, "comes from a rank that is not given children so");
  }
  if ((shown & at_fork::too_small) != 0) pause_far();
  hunger_of(a.source, counts).fetch_or(bit_of(a.source));
  look_again();
  wire().consume(a);
}

/// Gives `to` a stretch of the running piece. Returns false when none may leave; then this rank
/// does not look for a stretch again for a while, if `to` is of this host.
bool give_stretch(int to, std::uint64_t now) {
  gift g{to, false};
  capture_stack(give, address_of(&g), 0);
  if (!g.given && !is_near(to)) return false;  // its caller may give something else
  if (!g.given) {
    const std::uint64_t found_nothing = ticks();
    const std::uint64_t most = ticks_of_us(pause_max_us);
    const std::uint64_t least = std::min(part_of_looks * (found_nothing - now), most);
    state.of_stretches.lengthen(least, most, found_nothing);
    state.no_look_until = found_nothing + least;
    return false;
  }
  has_been_given(to);
  (is_near(to) ? state.of_stretches : state.of_far).end();
  return true;
}

/// True when the children given to ranks were worth it, or it is time to try again.
bool children_may_go(std::uint64_t now) {
  if ((counts.at_forks & at_fork::too_small) != 0) {
    std::atomic_ref(counts.at_forks).fetch_and(~at_fork::too_small);
    state.of_children.lengthen(ticks_of_us(worth_giving_us), ticks_of_us(pause_max_us), now);
    state.gave_too_small = true;
  }
  return state.of_children.is_over(now);
}

struct service {
  bool looked = false;      ///< It looked at frames.
  bool child_goes = false;  ///< The child that is about to begin is to leave.
};

/// Gives a hungry rank the oldest stretch that may leave. If there is none, says that the child
/// itself is to leave.
service serve(mark_kind kind) {
  const std::uint64_t now = ticks();
  const bool child_may_go = kind == mark_kind::fork && children_may_go(now) &&
                            static_cast<std::int64_t>(now - state.no_look_until) >= 0;
  if (!child_may_go && !state.of_stretches.is_over(now)) return {};
  const int to = take_hungry();
  if (to == no_rank) return {};
  const bool given = give_stretch(to, now);
  if (!given && !child_may_go && !is_near(to)) pause_far();
  look_again();
  if (given || !child_may_go || is_kept_by_scope(running_piece())) return {.looked = true};
  if (!std::exchange(state.gave_too_small, false)) state.of_children.end();
  return {.looked = true, .child_goes = true};
}

// ---- A child that leaves, and a fiber that gives its turn ---------------------------------------

bool send_child(piece* child, void* to) { return feed(*static_cast<const int*>(to), child); }

/// Runs below the frames of a child that has not begun its function.
long give_child(std::uint64_t to, std::uint64_t, std::uint64_t sp) {
  int rank = static_cast<int>(to);
  const leaving_frames frames =
      frames_of(running_piece(), sp, {}, boundary_of(running.youngest), rank);
  if (frames.high - sp >= read_from_bytes || !has_no_word_that_stays(frames)) return 0;
  has_been_given(rank);
  look_again();  // now, because this function does not return to the older side
  go_on_without_younger(send_child, &rank, sp);
}

std::uint64_t child_leaves() {
  if (!younger_may_go()) return 0;
  const int to = take_hungry();
  if (to == no_rank) return 0;
  const std::uint64_t goes_far = is_near(to) ? 0 : 1;
  const long left = capture_stack(give_child, static_cast<std::uint64_t>(to), 0);
  // If the child has left, this runs on the rank to which it went.
  if (left != 0) return (ticks() & ~std::uint64_t{1}) | goes_far;
  // The reason that kept this child here will most likely keep the next one, too.
  if (goes_far != 0) {
    pause_far();
  } else {
    state.of_children.lengthen(ticks_of_us(worth_giving_us), ticks_of_us(pause_max_us), ticks());
  }
  look_again();
  return 0;
}

/// Whether the whole running piece may leave; asked before it is suspended. (A piece with open
/// marks has stretches to give instead.)
bool may_leave_in_place_of_waiting(const piece* p) {
  return may_leave_whole(p) && p->departs_to == no_rank && running.watched == 0 &&
         (running.youngest == nullptr || address_of(running.youngest) >= p->hi) &&
         !may_have_forks() && !is_kept_by_scope(p) && reason_running_stays() == nullptr;
}

long give_whole(std::uint64_t to, std::uint64_t, std::uint64_t sp) {
  const int rank = static_cast<int>(to);
  const leaving_frames frames = frames_of(running_piece(), sp, {}, {}, rank);
  if (frames.high - sp >= read_from_bytes || !has_no_word_that_stays(frames)) return 0;
  has_been_given(rank);
  look_again();
  feed(rank, suspend_running(sp));
  abandon_stack();
}

/// Gives a hungry rank the oldest stretch that may leave. If there is none, and another fiber can
/// run here, gives it the fiber that calls this, which was about to give its turn.
bool serve_at_turn() {
  const piece* p = running_piece();
  const std::uint64_t now = ticks();
  if (p == nullptr || !state.of_stretches.is_over(now)) return false;
  const int to = take_hungry();
  if (to == no_rank) return false;
  const bool given = give_stretch(to, now);
  const bool gone = !given && anything_ready() && may_leave_in_place_of_waiting(p) &&
                    capture_stack(give_whole, static_cast<std::uint64_t>(to), 0) != 0;
  // If the fiber has left, this runs on another rank, which sets its own flags.
  if (gone) return true;
  if (!given && !is_near(to)) pause_far();
  look_again();
  return false;
}

void tell_that_this_rank_forks() {
  std::atomic_ref(counts.at_forks).fetch_and(~at_fork::first);
  for (int r = 0; r < job.count; ++r) {
    if (r == job.me || takes_no_stacks(r) || is_lost(r)) continue;
    if (state.far || is_near(r)) ask_for_hunger(r);
  }
}

/// True when the fork that is about to begin lies in no other fork's child.
bool begins_a_tree() {
  const boundary b = youngest_open_fork();
  return !b || b.kind != mark_kind::fork || b.at != youngest_mark();
}

/// Clears the stack where the frames of a tree of children are about to lie. Otherwise dead
/// addresses that earlier calls, or the search itself, have left there would be in parts of the
/// frames that are not written yet, and would keep the frames here.
void tidy_stack(bool looked) {
  constexpr std::size_t of_a_look = 32 << 10;
  constexpr std::uint64_t pause_us = 1000;
  static std::uint64_t tidied = 0;
  if ((counts.at_forks & at_fork::tidy) != 0) {
    std::atomic_ref(counts.at_forks).fetch_and(~at_fork::tidy);
  }
  // Not read from another clock, because that would be a call of the C library, which leaves words
  // of its own.
  const std::uint64_t now = ticks();
  if (now - tidied >= ticks_of_us(pause_us) && begins_a_tree()) {
    tidied = now;
    clear_used_stack_below();
  } else if (looked) {
    clear_stack_below(of_a_look);
  }
}

bool look_at_fork(mark_kind kind) {
  if (running_piece() == nullptr) return false;  // a handler that may not wait
  if ((counts.at_forks & (at_fork::first | at_fork::hungry | at_fork::tidy)) == 0) return false;
  if ((counts.at_forks & at_fork::first) != 0) tell_that_this_rank_forks();
  // This rank has just had nothing to do, so much time may have passed: the pause for ranks of
  // other hosts may be over.
  if (state.far && (counts.at_forks & at_fork::tidy) != 0) look_again();
  const service done = (counts.at_forks & at_fork::hungry) != 0 ? serve(kind) : service{};
  tidy_stack(done.looked);
  return done.child_goes;
}

/// Which ranks take children of this one.
enum class takers : std::uint8_t { none, of_host, of_all_hosts };

takers takers_wanted() {
  const char* text = std::getenv("SOJOURN_STEAL");
  if (text == nullptr || *text == 0) {
    // Off with the address sanitizer, because frames cannot be searched for addresses of this rank
    // then. Off in checked mode, which reports where in the program frames leave, because a fork
    // names no such place.
    return !SOJOURN_ASAN && !checked() && scan_is_enabled() ? takers::of_host : takers::none;
  }
  if (std::strcmp(text, "on") == 0) return takers::of_host;
  if (std::strcmp(text, "hosts") == 0) return takers::of_all_hosts;
  if (std::strcmp(text, "off") == 0) return takers::none;
  throw error(format("SOJOURN_STEAL=%s is neither on nor off nor hosts", text));
}

}  // namespace

void attach_steal() {
  const takers wanted = takers_wanted();
  state.far = wanted == takers::of_all_hosts;
  attach_stale_report();
  state.ranks = runtime_array<forking_rank>(static_cast<std::size_t>(job.count));
  state.random.seed(static_cast<unsigned>(job.me) + 1);
  on_message(runtime_message::forks_here, on_forks_here);
  on_message<std::uint32_t, on_hunger>(runtime_message::hunger);
  if (wanted == takers::none || job.count == 1 || !children_run_in_place()) return;
  on_fiber.fork = fork_hooks{look_at_fork, child_leaves, child_ends, serve_at_turn};
  on_dispatch.when_idle = show_hunger;
  std::atomic_ref(counts.at_forks).fetch_or(at_fork::first | at_fork::tidy);
}

}  // namespace sojourn::detail
