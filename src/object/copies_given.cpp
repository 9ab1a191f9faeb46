// SPDX-License-Identifier: Apache-2.0
// What a rank does for objects that it has, of which others have copies.
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "fiber/scheduler.hpp"
#include "message/inbound.hpp"
#include "object/call_places.hpp"
#include "object/objects_of_rank.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/marshalled.hpp"

namespace sojourn::detail {

using coherence::call_name;

void objects_of_rank::note_copied() {
  if (!checked()) job.quick_heap_bytes = noted_here_ != 0 ? 0 : job.my_heap_bytes;
  job.has_copied = !copied_.empty() || !fixed_.empty() || !attached_.empty() || !followers_.empty();
  let_all_handlers_wait(job.has_copied || job.has_moved);
}

/// Notes that an object which was made here is to have copies, or to leave. Null when that cannot
/// be: because a method is in progress in it, say, that began when nobody had noted it.
copied_object* objects_of_rank::note_object(std::uint64_t address, object_shape shape) {
  const std::size_t bytes = shape.bytes;
  if (copied_object* const known = copied_.find(address))
    return known->bytes == bytes && known->type == shape.type ? known : nullptr;
  if (!is_here(address, bytes) || bytes == 0 || copied_.overlaps(address, bytes) ||
      copied_.is_changed_with(address, bytes) || may_be_in_use(address, bytes))
    return nullptr;
  copied_object& noted = copied_.add(address, shape);
  ++noted_here_;
  note_copied();
  return &noted;
}

/// Of an object that is here: it is not too long to be marshalled for another rank, and can be.
bool objects_of_rank::fits_a_message(const copied_object& object) const {
  if (object.type == 0 || object.changing != 0) return true;  // while it changes, nobody gets it
  // To find out takes as long as to marshal it, so it is not asked for each call.
  constexpr unsigned not_asked = 256;
  if (object.too_long > 0) {
    --object.too_long;
    return false;
  }
  bool fits = false;
  try {
    const nonblocking<> promise;
    const void* const here = bytes_of(object.address);
    fits = here != nullptr && object_type_at(object.type)->length(here) <= longest_marshalled_copy;
  } catch (...) {
    // Its `save` throws.
  }
  if (!fits) object.too_long = not_asked;
  return fits;
}

/// The object at this address is, or may be, what a copy of this type was made of.
bool objects_of_rank::is_noted_as(std::uint64_t address, std::uint16_t type) const {
  const copied_object* const known = copied_.find(address);
  return type == 0 || (known != nullptr && known->type == type);
}

void objects_of_rank::forget_noted(std::uint64_t address) {
  copied_.remove(address);
  if (is_home(address)) --noted_here_;
  note_copied();
}

void objects_of_rank::serve_copy_or_call(request& m) {
  copy_or_call_header head;
  if (m.bytes < sizeof head) return refuse_request(m, sizeof head);
  std::memcpy(&head, m.payload, sizeof head);
  request inner = m;
  inner.payload += sizeof head;
  inner.bytes -= static_cast<std::uint32_t>(sizeof head);
  const bool runs = head.must_run != 0 || !is_a_type({head.bytes, head.type}) ||
                    (head.is_chosen != 0 && works_on_its_own_objects());
  if (runs) return run_contained(head.handler, inner);
  copied_object* const object = note_object(head.address, {head.bytes, head.type});
  if (object == nullptr || !rules().has_object(head.address) || !fits_a_message(*object))
    return run_contained(head.handler, inner);
  // Checked mode: the first call of an object runs here, where the object is checked.
  if (checked() && !std::exchange(object->is_checked, true))
    return run_contained(head.handler, inner);
  serves_copy_or_call_ = true;
  rules().arrive(m.source,
                 {.what = coherence::kind::copy,
                  .object = head.address,
                  .about = {.name = {m.source, head.number}, .writes = false, .body = nullptr},
                  .hops = 1});
  serves_copy_or_call_ = false;
  if (std::exchange(runs_call_, false)) return run_contained(head.handler, inner);
  object->changes_in_vain = 0;
  inner.consume();
}

/// A call whose message is being looked at runs when that has been done. Another one, which came
/// without its object's moving, is made again by its caller, as an rpc.
void objects_of_rank::run(std::uint64_t object, const coherence::call& c) {
  if (serves_copy_or_call_) {
    runs_call_ = true;
    return;
  }
  ++counts.moves_refused;
  send(c.name.rank, {.what = coherence::kind::result,
                     .object = object,
                     .about = {.name = c.name, .writes = false, .body = nullptr},
                     .how = coherence::outcome::refused});
}

coherence::in_progress objects_of_rank::methods_in(std::uint64_t object) const {
  const copied_object* const known = copied_.find(object);
  if (known == nullptr) return coherence::in_progress::reading;  // it has been destroyed
  if (known->changing != 0 || copied_.is_changed_with(known->address, known->bytes))
    return coherence::in_progress::writing;
  // Methods that only read are counted nowhere. On an object that was made elsewhere they are used
  // to its leaving.
  const coherence::entry* const e = known_.entries.find(object);
  if (e == nullptr || !e->has_order()) return coherence::in_progress::nothing;
  // One that is too long stays, unless a call wants it at home.
  const coherence::message& order = e->order.front();
  const bool must_go = order.about.name && order.rank == owner_of(object);
  if (!must_go && !fits_a_message(*known)) return coherence::in_progress::reading;
  if (fixed_.contains(object) || (is_home(object) && may_be_in_use(known->address, known->bytes)))
    return coherence::in_progress::reading;
  return coherence::in_progress::nothing;
}

/// Suspends until no rank has a copy of the object. False when none had.
bool objects_of_rank::may_change_now(std::uint64_t address) {
  if (rules().is_quiet(address)) return false;
  SOJOURN_CHECK(rules().has_object(address), "an object is to be changed that is not here");
  stays_here stays;
  const call_name name{job.me, waiting_.open()};
  if (rules().begin_here(address, {name, true, nullptr}) == coherence::next::run_on_object) {
    waiting_.close(name.number);
    return true;
  }
  (void)wait_until_told(name.number, 0);
  waiting_.close(name.number);
  rules().begin(address);
  return true;
}

bool objects_of_rank::begin_change(std::uint64_t address, std::size_t bytes) {
  if (copied_object* const whole = copied_.find(address);
      whole != nullptr && whole->bytes == bytes) {
    // Noted first: no copies are given while a change is in progress.
    ++whole->changing;
    ++whole->uses;
    const bool had_copies = may_change_now(address);
    if (copied_object* const object = copied_.find(address))
      object->changes_in_vain = had_copies ? 0 : object->changes_in_vain + 1;
    return true;
  }
  // Nothing of it was ever copied, or moved: it is as far from that as others (has_no_copies_near).
  if (bytes <= longest_not_noted && !copied_.overlaps(address, bytes)) return false;
  // A whole that such an object is a part of, or a part.
  copied_.begin_change_of(address, bytes);
  take_copies_back(copied_.overlapping(address, bytes));
  return true;
}

void objects_of_rank::end_change(std::uint64_t address, std::size_t bytes) {
  copied_object* const object = copied_.find(address);
  if (object == nullptr || object->bytes != bytes || object->changing == 0)
    return copied_.end_change_of(address, bytes);
  --object->changing;
  renew_copies_in_use(address);
  forget_if_settled(object);
}

/// A method that runs on an old copy, and has called one that has changed the object here, goes on
/// without a wait that would refresh the copy.
void objects_of_rank::renew_copies_in_use(std::uint64_t address) {
  const std::uint64_t end = running_piece() != nullptr ? running_piece()->hi : 0;
  for (const hold* h = running.holds; h != nullptr && reinterpret_cast<std::uint64_t>(h) < end;
       h = h->outer) {
    if (h->what != hold::kind::copy) continue;
    auto* const block = static_cast<copy_block*>(h->of);
    if (block->address == address && !block->is_good && rules().has_object(address) &&
        is_noted_as(address, block->type))
      bring_from(block, bytes_of(address));
  }
}

/// Suspends until no rank has copies of these objects, which are looked up again after each wait.
void objects_of_rank::take_copies_back(const std::vector<copied_object*>& which) {
  std::vector<std::uint64_t> where;
  for (const copied_object* object : which) where.push_back(object->address);
  for (const std::uint64_t address : where) {
    if (copied_.find(address) == nullptr) continue;  // destroyed meanwhile
    ++copied_.find(address)->changing;
    (void)may_change_now(address);
    if (copied_object* const object = copied_.find(address)) --object->changing;
  }
}

/// It is here, where it was made, nobody has a copy of it, and nobody asks for it.
bool objects_of_rank::may_forget(const copied_object& object) const {
  // Of a marshalled one, methods that are suspended on old copies may still ask.
  return object.type == 0 && object.changing == 0 && is_home(object.address) &&
         known_.entries.find(object.address) == nullptr &&
         known_.directories.find(object.address) == nullptr;
}

/// An object that is changed again and again, while nobody copies it, is a usual one again.
void objects_of_rank::forget_if_settled(copied_object* object) {
  constexpr unsigned enough = 8;
  if (object->changes_in_vain >= enough && may_forget(*object)) forget_noted(object->address);
}

void objects_of_rank::give_up_copies(std::uint64_t address, std::size_t bytes) {
  forget_attached(address, bytes);
  bring_parts_home(address, bytes);
  copied_.begin_change_of(address, bytes);
  take_copies_back(copied_.overlapping(address, bytes));
  copied_.end_change_of(address, bytes);
  for (const copied_object* object : copied_.overlapping(address, bytes)) {
    // Methods that are still suspended in a destroyed object find nothing to end.
    forget_noted(object->address);
  }
  std::erase_if(fixed_, [&](std::uint64_t fixed) { return fixed - address < bytes; });
  note_copied();
}

bool begin_change(std::uint64_t address, std::size_t bytes) {
  return objects_here->begin_change(address, bytes);
}
void end_change(std::uint64_t address, std::size_t bytes) {
  objects_here->end_change(address, bytes);
}
void give_up_copies(std::uint64_t address, std::size_t bytes) {
  objects_here->give_up_copies(address, bytes);
}

}  // namespace sojourn::detail
