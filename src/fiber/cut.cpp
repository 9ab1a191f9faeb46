// SPDX-License-Identifier: Apache-2.0
#include "fiber/cut.hpp"

#include <unordered_map>
#include <utility>

#include "fiber/hooks.hpp"
#include "fiber/language_locks.hpp"
#include "fiber/rules.hpp"
#include "fiber/ticket_table.hpp"
#include "fiber/watched.hpp"
#include "sojourn/counters.hpp"

namespace sojourn::detail {

namespace {

/// Names a result by its mark's address, to show that this fails (rule::ticket_per_cut).
[[gnu::noinline]] ticket_id ticket_of_mark(const boundary& b) {
  static std::unordered_map<std::uint64_t, ticket_id> names;
  ticket_id& id = names[b.at];
  if (!ticket_is_open(id)) id = ticket_open();
  return id;
}

/// Sets the scopes and holds of both parts. A piece counts in the scope that was open at its base;
/// a finish that is opened later counts for what runs inside it. So the older side goes on in the
/// scope that was open at the mark, and finishes opened since then belong to the younger part.
[[gnu::noinline]] void split_holds(piece* older, piece* younger, hold*& holds) {
  younger->holds = holds;
  for (; holds != nullptr && reinterpret_cast<std::uint64_t>(holds) < younger->hi;
       holds = holds->outer) {
    if (holds->what == hold::kind::finish) older->scope = holds->of;
  }
  if (reinterpret_cast<std::uint64_t>(holds) >= older->hi) holds = nullptr;
}

/// Leaves each by-reference child with the part whose frames it refers to.
[[gnu::noinline]] void split_referrers(piece* older, piece* younger, const boundary& b) {
  younger->referrers = older->referrers;
  younger->referrers->referred_by = &younger->referrers;
  referrer** link = &younger->referrers;
  while (*link != nullptr && refers_below(*link, b)) {
    (*link)->refers_to = younger;
    link = &(*link)->next_referrer;
  }
  older->referrers = std::exchange(*link, nullptr);
  if (older->referrers != nullptr) older->referrers->referred_by = &older->referrers;
}

/// Gives the younger part of a piece that was cut at `b` the mutexes that its frames have locked.
[[gnu::noinline]] void split_mutexes(piece* older, piece* younger, const boundary& b) {
  mutex_state** links[] = {&older->mutexes, &younger->mutexes};
  for (mutex_state* held = older->mutexes; held != nullptr; held = held->before) {
    mutex_state**& link = links[held_below(*held, b.at)];
    *link = held;
    link = &held->before;
  }
  *links[0] = *links[1] = nullptr;
}

}  // namespace

piece* divide(piece* older, const boundary& b, std::uint64_t outer, std::uint64_t sp,
              hold*& holds) {
  piece* younger = new_piece();
  younger->slot = older->slot;
  younger->sp = younger->in_place_from = sp;
  younger->hi = b.end;
  younger->base = reinterpret_cast<const void*>(b.at);
  younger->result = is_kept(rule::ticket_per_cut) ? open_ticket(-1)->id : ticket_of_mark(b);
  younger->thread = older->thread;
  younger->pinned = b.kind == mark_kind::fork_pinned;
  younger->scope = older->scope;
  younger->returns = b.returns;
  younger->called_from = b.older.pc;
  if (b.open != nullptr) {
    b.open->ticket = younger->result;
    b.open->events |= mark::was_cut;
  }

  if (holds != nullptr && reinterpret_cast<std::uint64_t>(holds) < b.end) [[unlikely]]
    split_holds(older, younger, holds);
  if (older->scope != nullptr) on_fiber.scope.joined(older->scope);
  if (older->referrers != nullptr && refers_below(older->referrers, b)) [[unlikely]]
    split_referrers(older, younger, b);
  if (is_by_reference(b.kind)) {
    younger->by_reference = true;
    younger->refers_under = outer;
    add_referrer(older, younger);
  }
  ++counts.cuts;
  return younger;
}

namespace {

/// Notes for each side of `b` whether its own marks lie in methods.
[[gnu::noinline]] void split_marks_in_methods(piece* older, piece* younger, const boundary& b) {
  older->marks_hold_methods = false;
  for (const mark* m = older->youngest;
       m != nullptr && reinterpret_cast<std::uint64_t>(m) < older->hi; m = m->outer) {
    if (m == b.open || method_depth(*m) == 0) continue;  // b's are in older->methods
    (reinterpret_cast<std::uint64_t>(m) < b.at ? younger : older)->marks_hold_methods = true;
  }
}

}  // namespace

void give_handler_context(piece* older, const boundary& b, const handler_entry& entry,
                          ticket_id result) {
  older->sp = b.end - handler_context_bytes;
  older->in_place_from = b.end;
  make_room_for_image(older);
  write_handler_context(older->image, b, entry, result);
}

piece* cut(piece* older, const boundary& b, std::uint64_t how_cut) {
  const std::uint64_t outer = is_by_reference(b.kind) ? end_of_outer(boundaries(older), b) : 0;
  piece* younger = divide(older, b, outer, older->sp, older->holds);
  younger->youngest =
      reinterpret_cast<std::uint64_t>(older->youngest) < younger->hi ? older->youngest : nullptr;
  younger->exceptions = std::exchange(older->exceptions, {});
  if (older->static_inits != 0) [[unlikely]]
    older->static_inits -= younger->static_inits = divide_initialisations(older, younger);
  if (recursive_mutexes_held != 0) [[unlikely]]
    divide_recursive_mutexes(older, younger);
  younger->methods = std::exchange(older->methods, methods_at(b));
  if (older->marks_hold_methods) [[unlikely]]
    split_marks_in_methods(older, younger, b);
  // Noted for both sides, because nobody knows which side's marks these are: a mark that was cut
  // before is in no chain, but still has saved exceptions.
  younger->marks_hold_exceptions = older->marks_hold_exceptions;
  younger->has_pinned_fork = older->has_pinned_fork;
  younger->has_forks = older->has_forks;
  younger->links = older->links;
  older->links = {0, older->links.by_tables + 1};  // forget_fork_links()
  younger->fp = std::exchange(older->fp, fp_of_mark(b, older->fp));
  if (older->mutexes != nullptr) [[unlikely]]
    split_mutexes(older, younger, b);
  if (older->in_place_from != older->sp) {
    younger->in_place_from = older->in_place_from;
    std::swap(younger->image, older->image);
    std::swap(younger->image_capacity, older->image_capacity);
  }
  older->sp = older->in_place_from = b.end;
  older->youngest = older_mark(older, b, older->youngest);
  if (b.open == nullptr) {
    handler_entry entry = separate(b);
    entry.how_cut = how_cut;
    give_handler_context(older, b, entry, younger->result);
  }
  // The younger part is in place, too: it follows the older one in the slot's list.
  younger->next_in_slot = std::exchange(older->next_in_slot, younger);
  return younger;
}

}  // namespace sojourn::detail
