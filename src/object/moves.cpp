// SPDX-License-Identifier: Apache-2.0
// Objects that move: where they are, and calls that have them moved to this rank.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "frames/symbols.hpp"
#include "message/inbound.hpp"
#include "message/outbound.hpp"
#include "message/programs.hpp"
#include "object/call_places.hpp"
#include "object/copies.hpp"
#include "object/objects_of_rank.hpp"
#include "object/sites.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/marshalled.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/rpc.hpp"
#include "sojourn/waiting/sleep.hpp"

namespace sojourn::detail {

using coherence::next;
using coherence::woken;

// ---- Where an object is ------------------------------------------------------------------------

int objects_of_rank::probable_place(std::uint64_t address) {
  return rules().has_object(address) ? job.me : guess(address);
}

int objects_of_rank::guess(std::uint64_t object) const {
  if (is_home(object)) {
    const coherence::directory* const d = known_.directories.find(object);
    return d == nullptr ? job.me : d->owner;
  }
  const int* const known = places_.find(object);
  return known != nullptr && !is_lost(*known) ? *known : owner_of(object);
}

void objects_of_rank::note_place(std::uint64_t object, int rank) {
  constexpr std::size_t most_places = 1u << 16;
  if (rank == job.me || rank == owner_of(object)) {
    places_.erase(object);
  } else {
    if (places_.size() >= most_places) places_ = {};  // they are guesses
    places_.find_or_add(object).first = rank;
  }
  note_moved();
}

void objects_of_rank::hear_of_place(int from, const object_place_message& m) {
  using kind = object_place_message::kind;
  switch (m.what) {
    case kind::probable_place:
      if (!is_home(m.address) && m.rank != job.me) note_place(m.address, m.rank);
      return;
    case kind::has_come:
    case kind::has_followed:
      if (copied_object* const object = copied_.find(m.address)) --object->on_its_way;
      if (m.what == kind::has_come) attached_should_follow(m.address, from);
      return wake_those_who_wait_for_arrivals();
    case kind::question:
      return tell_place(from, {m.address, m.ticket, m.rank, kind::answer});
    case kind::answer:
      return send_result(m.ticket, nullptr, 0);
  }
}

/// Those who wait for something of a rank that has ended look again.
void objects_of_rank::give_up_waiting_for(int rank) {
  for (const question& q : questions_) {
    if (q.of == rank) send_result(q.answer, nullptr, 0);
  }
  wake_those_who_wait_for_arrivals();
}

void objects_of_rank::wake_those_who_wait_for_arrivals() {
  for (const ticket_id ticket : std::exchange(wait_for_arrivals_, {}))
    send_result(ticket, nullptr, 0);
}
void objects_of_rank::wait_for_arrival() {
  stays_here stays;
  ticket_id ticket = ticket_open();
  wait_for_arrivals_.push_back(ticket);
  ticket_wait(ticket);
  ticket_drop(ticket);
}

void objects_of_rank::note_moved() {
  job.has_moved = guests_ != 0 || away_ != 0 || places_.size() != 0;
  let_all_handlers_wait(job.has_copied || job.has_moved);
}

/// An object of this rank that is elsewhere and shares a byte with the range, or null.
copied_object* objects_of_rank::one_that_is_away(std::uint64_t address, std::size_t bytes) {
  if (away_ == 0) return nullptr;
  if (copied_object* const known = copied_.find(address); known != nullptr && known->bytes == bytes)
    return rules().has_object(address) ? nullptr : known;  // none overlaps another
  for (copied_object* const object : copied_.overlapping(address, bytes)) {
    if (!rules().has_object(object->address)) return object;
  }
  return nullptr;
}

namespace {

bool contains(const copied_object& whole, std::uint64_t address, std::size_t bytes) {
  return address >= whole.address && address + bytes <= whole.address + whole.bytes;
}

}  // namespace

/// The object, or a part of one, that was made elsewhere and is here.
object_place objects_of_rank::find_guest(std::uint64_t address, object_shape shape) {
  const std::size_t bytes = shape.bytes;
  if (guests_ == 0) return {};
  copy_block* block = memory().find(address);
  if (block == nullptr || !block->is_object || block->bytes < bytes) {
    block = nullptr;
    for (const copied_object* const whole : copied_.overlapping(address, bytes)) {
      if (contains(*whole, address, bytes) && !is_home(whole->address))
        block = memory().find(whole->address);
    }
  }
  if (block == nullptr) return {};
  if (block->address == address && block->bytes == bytes && !is_one(*block, shape))
    throw error(format(
        "the object at 0x%llx is called as a %s, and has moved as something else of that length: "
        "fetch it through a pointer of the type with which it was made",
        static_cast<unsigned long long>(address),
        demangle_type(object_type_at(shape.type)->type->name()).c_str()));
  return {static_cast<std::byte*>(block->object()) + (address - block->address), block, job.me};
}

object_place objects_of_rank::find(std::uint64_t address, object_shape shape) {
  const std::size_t bytes = shape.bytes;
  if (!is_home(address)) {
    const object_place at = find_guest(address, shape);
    if (at.here != nullptr && is_lost(owner_of(address)))
      throw_rank_lost(owner_of(address), "a call");
    return at.here != nullptr ? at : object_place{nullptr, nullptr, guess(address)};
  }
  while (copied_object* const away = one_that_is_away(address, bytes)) {
    if (contains(*away, address, bytes)) {
      const object_place at = find_away(away->address);
      if (at.here == nullptr && at.rank != job.me) return at;
    } else {
      bring_home(*away);
    }
  }
  return {reinterpret_cast<void*>(address), nullptr, job.me};
}

object_place objects_of_rank::find_for(int caller, std::uint64_t address, object_shape shape) {
  object_place at = find(address, shape);
  constexpr std::uint16_t most = 0xffff;
  if (at.block != nullptr && caller == owner_of(address) && at.block->away_from_home != most)
    ++at.block->away_from_home;
  // Two guesses can name each other. Home knows.
  if (at.here == nullptr && !is_home(address)) at.rank = owner_of(address);
  if (at.here == nullptr && at.rank == caller && is_home(address)) {
    // Home sends calls to a rank that sends them back: the object has left there, and the message
    // that says so is on its way. It comes before the answer to a question.
    stays_here stays;
    ticket_id answer = ticket_open();
    questions_.push_back({caller, answer});
    tell_place(caller, {address, answer, caller, object_place_message::kind::question});
    ticket_wait(answer);
    std::erase_if(questions_, [&](const question& q) { return q.answer == answer; });
    ticket_drop(answer);
    at = find(address, shape);
  }
  if (at.here == nullptr && at.rank != caller && caller != job.me)
    tell_place(caller, {address, 0, at.rank, object_place_message::kind::probable_place});
  return at;
}

/// Where an object of this rank is, which was elsewhere a moment ago. Waits for the end of a move,
/// so that a call which is sent there arrives after the object. (It may have left again by then.)
object_place objects_of_rank::find_away(std::uint64_t address) {
  stays_here stays;
  const coherence::call_name name{job.me, waiting_.open()};
  const next then = rules().access(address, {name, false, nullptr}, coherence::ask::to_run);
  const int told = then == next::wait ? wait_until_told(name.number, 0) : -1;
  const waiting_call was = waiting_.close(name.number);
  rules().ended(address, name);
  if (then == next::lost || told == static_cast<int>(woken::lost))
    throw_rank_lost(was.rank >= 0 && is_lost(was.rank) ? was.rank : first_lost_rank(), "a call");
  if (told == static_cast<int>(woken::on_object)) {
    rules().begin(address);
  } else if (then != next::run_on_object) {
    // It may have gone on meanwhile.
    const int owner = rules().owner_as_home_knows(address);
    const copied_object* const away = copied_.find(address);
    const bool is_on_its_way = away != nullptr && owner != job.me && away->on_its_way > 0;
    if (is_on_its_way) wait_for_arrival();
    return {nullptr, nullptr, is_on_its_way ? job.me : owner};
  }
  return {reinterpret_cast<void*>(address), nullptr, job.me};
}

// ---- Bringing an object here -------------------------------------------------------------------

object_place objects_of_rank::bring_here(std::uint64_t address, object_shape shape, bool writes,
                                         std::uint64_t chosen_at, bool is_attached) {
  copy_memory& memory_here = memory();
  copy_block* room = nullptr;
  if (is_home(address)) {
    // Neither a part of an object that is away, nor one that has a part elsewhere, is here.
    const copied_object* const away = one_that_is_away(address, shape.bytes);
    if (away != nullptr && (away->address != address || away->bytes != shape.bytes))
      return {nullptr, nullptr, guess(away->address)};
  } else {
    const bool is_full = memory_here.object_bytes() > most_;
    room = is_full ? nullptr : memory_here.take(address, shape);
    if (room == nullptr) return {nullptr, nullptr, guess(address)};
  }
  stays_here stays;
  const coherence::call_name name{job.me, waiting_.open()};
  waiting_.find(name.number)->room = room;
  waiting_.find(name.number)->follows = is_attached;
  asked_ = shape;
  is_chosen_ = chosen_at != 0;
  is_attached_ = is_attached;
  const next then = rules().access(address, {name, writes, nullptr}, coherence::ask::for_object);
  is_chosen_ = is_attached_ = false;
  const int told = then == next::wait ? wait_until_told(name.number, 0) : -1;
  const waiting_call was = waiting_.close(name.number);
  if (was.room != nullptr) memory_here.give_back(was.room);
  rules().ended(address, name);
  if (then == next::lost || told == static_cast<int>(woken::lost))
    throw_rank_lost(was.rank >= 0 && is_lost(was.rank) ? was.rank : first_lost_rank(), "a call");
  if (told == static_cast<int>(woken::on_object)) {
    rules().begin(address);
  } else if (then != next::run_on_object) {
    const int rank = was.rank >= 0 && was.rank != job.me ? was.rank : guess(address);
    if (chosen_at != 0) note_bringing_refused(chosen_at);
    return {nullptr, nullptr, rank};
  }
  if (is_home(address)) {
    copied_object* const object = copied_.find(address);
    if (chosen_at != 0 && object != nullptr) {
      object->asked_at = number_of_place(chosen_at);
      object->uses = 0;
    }
    return {reinterpret_cast<void*>(address), nullptr, job.me};
  }
  copy_block* const block = memory_here.find(address);
  if (block == nullptr || !block->is_object || !is_one(*block, shape))
    return {nullptr, nullptr, guess(address)};
  if (chosen_at != 0) note_copy(block, chosen_at);
  return {block->object(), block, job.me};
}

object_place objects_of_rank::bring_for_call(std::uint64_t address, object_shape shape, bool writes,
                                             std::uint64_t chosen_at) {
  const bool was_away = is_home(address) && !rules().has_object(address);
  const object_place at = bring_here(address, shape, writes, chosen_at);
  if (was_away && at.here != nullptr) attached_should_follow(address, job.me);
  return at;
}

/// Brings back an object that was made here. A method that is in progress in it has to end first.
void objects_of_rank::bring_home(const copied_object& away) {
  const std::uint64_t address = away.address;
  const object_shape shape{away.bytes, away.type};
  constexpr std::uint64_t longest_wait_ns = 1'000'000;
  std::uint64_t wait_ns = 1000;
  stays_here stays;
  while (copied_.find(address) != nullptr && bring_here(address, shape, true).here == nullptr) {
    fix_object(address, false);
    sleep_for(std::chrono::nanoseconds(wait_ns));
    wait_ns = std::min(wait_ns * 2, longest_wait_ns);
  }
}

bool objects_of_rank::bring_all_home() {
  std::vector<std::pair<std::uint64_t, object_shape>> all;
  copied_.each([&](const copied_object& o) {
    if (is_home(o.address) && !rules().has_object(o.address))
      all.emplace_back(o.address, object_shape{o.bytes, o.type});
  });
  bool has_all = true;
  for (const auto& [address, shape] : all) {
    fix_object(address, false);
    has_all = bring_here(address, shape, true).here != nullptr && has_all;
  }
  return has_all;
}

bool bring_objects_home() { return objects_here->bring_all_home(); }

/// The object has arrived with the message that is being looked at.
void objects_of_rank::take_in(std::uint64_t object, const coherence::call_name& c) {
  ++counts.objects_moved;
  if (copy_block* const copy = memory().find(object)) make_old(copy);
  if (is_home(object)) {
    if (copied_object* const known = copied_.find(object);
        known == nullptr || known->bytes != asked_.bytes || known->type != asked_.type)
      die("an object at 0x%llx has come home with %zu bytes, which are not its length",
          static_cast<unsigned long long>(object), asked_.bytes);
    take_home(object);
    --away_;
    return note_moved();
  }
  waiting_call* const waits = c.rank == job.me ? waiting_.find(c.number) : nullptr;
  const bool follows = waits != nullptr && waits->follows;
  copy_block* block = waits != nullptr ? std::exchange(waits->room, nullptr) : nullptr;
  if (block == nullptr || block->bytes != asked_.bytes || block->type != asked_.type) {
    if (block != nullptr) memory_->give_back(block);
    block = memory().take(object, asked_);
    if (block == nullptr) die("there is no room for an object that has moved here");
  }
  bring_arriving(block);
  memory_->make_object(block);
  copied_.add(object, asked_);
  ++guests_;
  using kind = object_place_message::kind;
  tell_place(owner_of(object), {object, 0, job.me, follows ? kind::has_followed : kind::has_come});
  note_copied();
  note_moved();
}

/// An object of this rank has come home, for no call: it is a usual one again, if it can be.
void objects_of_rank::note_given_back(std::uint64_t object) {
  attached_should_follow(object, job.me);
  if (const copied_object* const known = copied_.find(object);
      known != nullptr && may_forget(*known))
    forget_noted(object);
}

/// The object's bytes have left.
void objects_of_rank::forget_object(std::uint64_t object) {
  fixed_.erase(object);
  if (is_home(object)) {
    ++away_;
    copied_object& leaves = *copied_.find(object);
    ++leaves.on_its_way;
    note_left_home(std::exchange(leaves.asked_at, 0), leaves.uses);
  } else {
    if (copy_block* const block = memory_->find(object)) make_old(block);
    --guests_;
    forget_noted(object);
  }
  note_moved();
}

// ---- Objects that stay --------------------------------------------------------------------------

/// False when the object is not here.
bool objects_of_rank::fix_if_here(std::uint64_t address, bool fixed) {
  if (!rules().has_object(address)) return false;
  if (fixed) {
    fixed_.insert(address);
  } else {
    fixed_.erase(address);
  }
  note_copied();  // so that destroy() forgets it
  return true;
}

int objects_of_rank::place_that_home_knows(std::uint64_t address) {
  while (away_ != 0 && !rules().has_object(address)) {
    if (const object_place at = find_away(address); at.here == nullptr && at.rank != job.me)
      return at.rank;
  }
  return job.me;
}

void fix_object(std::uint64_t address, bool fixed) {
  const int home = owner_of(address);
  if (home == no_owner) bad_access(address, "Method = &fix]");
  int rank = probable_place(address);
  const auto is_done = [&] {
    return rpc(
               rank, [](std::uint64_t a, bool f) { return objects_here->fix_if_here(a, f); },
               address, fixed)
        .get();
  };
  while (!is_done()) {
    rank =
        rpc(
            home, [](std::uint64_t a) { return objects_here->place_that_home_knows(a); }, address)
            .get();
  }
}

void objects_of_rank::bring_parts_home(std::uint64_t address, std::size_t bytes) {
  while (const copied_object* const away = one_that_is_away(address, bytes)) bring_home(*away);
}
void bring_parts_home(std::uint64_t address, std::size_t bytes) {
  objects_here->bring_parts_home(address, bytes);
}

object_place find_object(std::uint64_t address, object_shape shape) {
  return objects_here->find(address, shape);
}
object_place bring_object(std::uint64_t address, object_shape shape, bool writes,
                          std::uint64_t chosen_at) {
  return objects_here->bring_for_call(address, shape, writes, chosen_at);
}
int probable_place(std::uint64_t address) { return objects_here->probable_place(address); }
object_place find_object_for(int caller, std::uint64_t address, object_shape shape) {
  return objects_here->find_for(caller, address, shape);
}

/// A pointer to an object of this rank is wanted that is elsewhere, or that has a part elsewhere.
void objects_of_rank::refuse_if_away(std::uint64_t address, std::size_t bytes) {
  if (const copied_object* const away = one_that_is_away(address, bytes); away != nullptr)
    throw error(format(
        "global_ptr::local(): the object at 0x%llx, or a part of it, has been fetched "
        "(via::fetch) and is on rank %d: call a method, which finds it",
        static_cast<unsigned long long>(address), rules().owner_as_home_knows(away->address)));
}
void refuse_if_away(std::uint64_t address, std::size_t bytes) {
  objects_here->refuse_if_away(address, bytes);
}

void warn_of_raw_pointers(const char* method) {
  static bool has_warned = false;
  if (std::exchange(has_warned, true)) return;
  const std::string_view name = method_name_in(method);
  std::fprintf(
      stderr,
      "sojourn: rank %d: warning: %.*s is called via::fetch, but the program also uses such "
      "objects through pointers, put or get (global_ptr::local), which know of no move: "
      "they stay, and are called where they are (docs/policies.md)\n",
      job.me, static_cast<int>(name.size()), name.data());
}

void warn_of_changes_by_pointers(const char* method) {
  static bool has_warned = false;
  if (std::exchange(has_warned, true)) return;
  const std::string_view name = method_name_in(method);
  std::fprintf(
      stderr,
      "sojourn: rank %d: warning: %.*s is called via::cache, but the program can also change such "
      "objects through pointers or put (global_ptr::local), of which copies would not know: they "
      "are not copied; read through global_ptr<const T>(p).local() (docs/policies.md)\n",
      job.me, static_cast<int>(name.size()), name.data());
}

bool runs_one_program() {
  static const bool one = [] {
    for (int rank = 0; rank < job.count; ++rank) {
      if (runs_other_program(rank)) return false;
    }
    return true;
  }();
  return one;
}

}  // namespace sojourn::detail
