// SPDX-License-Identifier: Apache-2.0
#include "object/object_messages.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "fiber/ready_queue.hpp"
#include "fiber/thrown.hpp"
#include "frames/symbols.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "message/outbound.hpp"
#include "object/call_places.hpp"
#include "object/objects_of_rank.hpp"
#include "sojourn/counters.hpp"

namespace sojourn::detail {

using coherence::call_name;
using coherence::woken;

namespace {

/// Refuses what no rank sends.
void check(const arrival& a, const object_message& m) {
  using coherence::kind;
  if (m.what > kind::have || m.what == kind::copy) refuse_arrival(a, "is of no kind that there is");
  if (coherence::is_reply(m.what) != (a.kind == message_class::reply))
    refuse_arrival(a, "came among messages of another class");
  const int home = owner_of(m.address);
  if (home == no_owner || m.bytes > longest_copy)
    refuse_arrival(a, "is about no object that there can be");
  const bool is_to_home = m.what == kind::take || m.what == kind::give || m.what == kind::moved ||
                          m.what == kind::have || m.what == kind::destroy;
  const bool is_from_home =
      m.what == kind::hand || m.what == kind::kill || m.what == kind::lost || m.what == kind::query;
  if ((is_to_home && home != job.me) || (is_from_home && home != a.source))
    refuse_arrival(a, "is about an object of another rank");
  const auto is_a_rank = [](int rank) { return rank >= 0 && rank < job.count; };
  const bool names_rank = m.what == kind::hand || m.what == kind::give || m.what == kind::query;
  if ((m.caller != coherence::nobody && !is_a_rank(m.caller)) || (names_rank && !is_a_rank(m.rank)))
    refuse_arrival(a, "names a rank that there is not");
  const bool asks = m.what == kind::take || m.what == kind::refresh || m.what == kind::run;
  if (asks && m.caller != a.source && a.source != home && home != job.me)
    refuse_arrival(a, "names a call of another rank");
  if (!is_a_type({m.bytes, m.type})) refuse_arrival(a, "names a type that there is not");
  const bool brings_bytes =
      m.what == kind::grant || m.what == kind::object || (m.what == kind::bytes && m.bytes != 0);
  const std::size_t brought = a.bytes - sizeof m;
  if (brings_bytes && (m.type == 0 ? brought != m.bytes : brought == 0))
    refuse_arrival(a, "brings an object of another length than it says");
}

void on_object_message(arrival& a, const object_message& m) {
  check(a, m);
  objects_here->arrive(a, m);
  wire().consume(a);
}

void on_object_place(arrival& a, const object_place_message& m) {
  using kind = object_place_message::kind;
  const bool is_well_formed = owner_of(m.address) != no_owner && m.rank >= 0 &&
                              m.rank < job.count && m.what <= kind::answer &&
                              (m.what != kind::answer || home_of(m.ticket) == job.me);
  if (!is_well_formed) refuse_arrival(a, "tells of a place that there is not");
  objects_here->hear_of_place(a.source, m);
  wire().consume(a);
}

}  // namespace

void attach_object_messages() {
  on_message<object_message, on_object_message>(runtime_message::object_copies);
  on_message<object_place_message, on_object_place>(runtime_message::object_place);
}

void objects_of_rank::send_request(int to, const object_message& m) {
  struct waiting {
    int to;
    object_message what;
    static void go(void* context) {
      auto* w = static_cast<waiting*>(context);
      std::byte* const room = reserve_in_turn(w->to, sizeof w->what);
      if (room == nullptr) return when_room(w->to, sizeof w->what, go, w, nullptr);
      w->write(room);
      delete w;
    }
    void write(std::byte* room) const {
      std::memcpy(room, &what, sizeof what);
      commit_message(to, message_class::request, runtime_message::object_copies, 0, 0);
      count_message(runtime_message::object_copies, sizeof what);
    }
  };
  if (std::byte* const room = try_reserve_request(to, sizeof m)) return waiting{to, m}.write(room);
  when_room(to, sizeof m, waiting::go, new waiting{to, m}, nullptr);
}

namespace {

/// An object that is marshalled, as it is sent.
std::vector<std::byte> write_for(int to, std::uint64_t object, const void* here,
                                 const object_type& type) {
  const nonblocking<> promise;
  try {
    std::vector<std::byte> written = type.write(here);
    if (written.size() > longest_object_message)
      throw error(format("it takes %zu bytes, and at most %zu go in a message", written.size(),
                         longest_object_message));
    return written;
  } catch (...) {
    die("the %s at 0x%llx cannot be sent to rank %d, which is to have it or a copy of it: %s",
        demangle_type(type.type->name()).c_str(), static_cast<unsigned long long>(object), to,
        text_of(std::current_exception()).c_str());
  }
}
[[noreturn]] void cannot_marshal(std::uint16_t type) {
  die("a %s cannot be marshalled, to be moved or copied: %s",
      demangle_type(object_type_at(type)->type->name()).c_str(),
      text_of(std::current_exception()).c_str());
}

}  // namespace

void objects_of_rank::send(int to, const coherence::message& m) {
  using coherence::kind;
  const copied_object* const object = copied_.find(m.object);
  object_message told{
      .what = m.what,
      .how = m.how,
      .rank = static_cast<std::int16_t>(m.rank),
      .caller = m.about.name.rank,
      .number = m.about.name.number,
      .address = m.object,
      .bytes = static_cast<std::uint32_t>(object == nullptr ? asked_.bytes : object->bytes),
      .type = object == nullptr ? asked_.type : object->type,
      .hops = m.hops,
      .writes = m.about.writes,
      .is_sure = m.is_sure,
      .is_chosen = is_chosen_,
      .is_attached = is_attached_};
  switch (m.what) {
    case kind::copy:
      // asks_for_copy sends it, with the call that it is about. That call waits already if home
      // first had to wait for the end of a move.
      if (waiting_.find(m.about.name.number)->ticket == 0) {
        sends_copy_ = true;
        return;
      }
      [[fallthrough]];
    case kind::run:
      if (m.about.name.rank != job.me) return send_request(to, told);
      // The call is made as an rpc, now that home has seen where the object is.
      if (waiting_call* const waits = waiting_.find(m.about.name.number)) {
        waits->told = static_cast<int>(woken::refused);
        waits->rank = to;
        if (waits->ticket != 0) send_result(waits->ticket, nullptr, 0);
      }
      return;
    case kind::invalidate:
      ++counts.copies_taken_back;
      return send_request(to, told);
    case kind::object:
    case kind::grant:
    case kind::bytes: {
      if (m.what == kind::grant) ++counts.copies_given;
      const void* const here = bytes_of(m.object);
      // The object that a method asks for, which is suspended on a copy, may have been destroyed.
      if (here == nullptr || !is_noted_as(m.object, told.type)) told.bytes = told.type = 0;
      std::size_t length = told.bytes;
      std::vector<std::byte> written;
      if (told.type != 0) {
        written = write_for(to, m.object, here, *object_type_at(told.type));
        length = written.size();
        if (m.what == kind::object && !is_home(m.object))
          memory_->note_sent(memory_->find(m.object), written.data(), length);
      }
      leaving_.resize(std::max(leaving_.size(), sizeof told + length));
      std::memcpy(leaving_.data(), &told, sizeof told);
      if (length != 0)
        std::memcpy(leaving_.data() + sizeof told, told.type == 0 ? here : written.data(), length);
      return send_reply(to, runtime_message::object_copies, 0, 0, leaving_.data(),
                        sizeof told + length);
    }
    default:
      if (!coherence::is_reply(m.what)) return send_request(to, told);
      return send_reply(to, runtime_message::object_copies, 0, 0, &told, sizeof told);
  }
}

/// The object, which is here; null when it is not.
const void* objects_of_rank::bytes_of(std::uint64_t object) const {
  if (is_home(object)) return reinterpret_cast<const void*>(object);
  copy_block* const block = memory_ == nullptr ? nullptr : memory_->find(object);
  return block != nullptr && block->is_object ? block->object() : nullptr;
}

void objects_of_rank::arrive(const arrival& a, const object_message& m) {
  using coherence::kind;
  coherence::message told{
      .what = m.what,
      .object = m.address,
      .about = {.name = {m.caller, m.number}, .writes = m.writes != 0, .body = nullptr},
      .is_sure = m.is_sure != 0,
      .hops = m.hops,
      .how = m.how,
      .rank = m.rank};
  arriving_ = a.payload + sizeof m;
  arriving_bytes_ = a.bytes - sizeof m;
  asked_ = {m.bytes, m.type};
  if (m.what == kind::take && m.is_attached != 0 && !follows(m.address, asked_))
    return run(m.address, told.about);
  if (m.what == kind::take) {
    copied_object* const object =
        rules().has_object(m.address) ? note_object(m.address, asked_) : copied_.find(m.address);
    // Checked mode: the first call of an object runs here, where the object is checked.
    const bool is_checked_first =
        checked() && object != nullptr && !std::exchange(object->is_checked, true);
    const bool stays_home =
        m.is_chosen != 0 && rules().has_object(m.address) && works_on_its_own_objects();
    if (object == nullptr || object->bytes != m.bytes || object->type != m.type ||
        is_checked_first || stays_home)
      return run(m.address, told.about);
  }
  const bool is_about_a_move = m.what == kind::moved || m.what == kind::have;
  if (is_about_a_move && m.how == coherence::outcome::done) {
    if (copied_object* const object = copied_.find(m.address)) ++object->on_its_way;
  }
  if (m.what == kind::object) take_in(m.address, told.about.name);
  rules().arrive(a.source, told);
  if (m.what == kind::object && m.caller == coherence::nobody) note_given_back(m.address);
}

/// Makes an object of another rank, or a copy of one, from the message that is being looked at.
void objects_of_rank::bring_arriving(copy_block* block) {
  try {
    memory_->fill(block, arriving_, arriving_bytes_);
  } catch (...) {
    cannot_marshal(block->type);
  }
}
/// The same from one that is here.
void objects_of_rank::bring_from(copy_block* block, const void* object) {
  if (block->type == 0) return memory_->fill(block, static_cast<const std::byte*>(object), 0);
  try {
    const std::vector<std::byte> written = object_type_at(block->type)->write(object);
    memory_->fill(block, written.data(), written.size());
  } catch (...) {
    cannot_marshal(block->type);
  }
}
/// An object that was made here has come back.
void objects_of_rank::take_home(std::uint64_t object) {
  auto* const at = reinterpret_cast<void*>(object);
  if (asked_.type == 0) {
    std::memcpy(at, arriving_, arriving_bytes_);
    return;
  }
  const object_type& type = *object_type_at(asked_.type);
  try {
    type.destroy(at);
    type.read(at, arriving_, arriving_bytes_);
  } catch (...) {
    cannot_marshal(asked_.type);
  }
}

void objects_of_rank::wake(std::uint64_t object, const call_name& c, woken how) {
  if (const auto known = refreshing_.find(c.number); known != refreshing_.end()) {
    const refreshing r = known->second;
    refreshing_.erase(known);
    // Without bytes, because the object or its rank is gone, the method ends on those that it has.
    if (how == woken::refreshed) {
      const void* const bytes =
          rules().has_object(r.block->address) && is_noted_as(r.block->address, r.block->type)
              ? bytes_of(r.block->address)
              : nullptr;
      if (bytes != nullptr) {
        bring_from(r.block, bytes);
      } else if (arriving_bytes_ != 0 && asked_.bytes == r.block->bytes &&
                 asked_.type == r.block->type) {
        bring_arriving(r.block);
      }
    }
    if (--refreshes_[r.of] == 0) {
      refreshes_.erase(r.of);
      refreshed_.insert(r.of);
      make_ready(r.of, r.of->word);
    }
    return;
  }
  waiting_call* const known = waiting_.find(c.number);
  if (known == nullptr) return;
  waiting_call& waits = *known;
  if (how == woken::on_copy && memory().find(object) == nullptr) {
    copy_block* const block = std::exchange(waits.room, nullptr);
    if (block == nullptr || block->bytes != asked_.bytes || block->type != asked_.type)
      die("a copy of the object at 0x%llx has come with %zu bytes, and this rank has asked for %u",
          static_cast<unsigned long long>(object), asked_.bytes,
          block == nullptr ? 0u : block->bytes);
    bring_arriving(block);
    memory_->make_good(block);
  }
  waits.told = static_cast<int>(how);
  waits.rank = probable_place(object);
  if (waits.ticket != 0) send_result(waits.ticket, nullptr, 0);
}

/// Suspends until the call is told how it goes on, or the result of `ticket` has come, when it
/// returns -1. 0: there is no other result.
int objects_of_rank::wait_until_told(std::uint64_t number, ticket_id ticket) {
  if (waiting_.find(number)->told >= 0) return waiting_.find(number)->told;
  ticket_id waits_for = ticket != 0 ? ticket : ticket_open();
  waiting_.find(number)->ticket = waits_for;
  ticket_wait(waits_for);
  if (ticket == 0) ticket_drop(waits_for);
  return waiting_.find(number)->told;
}

void objects_of_rank::go_on_later(std::uint64_t object) {
  if (!later_.insert(object).second) return;
  auto* t = new go_on_task;
  t->object = object;
  t->scope = nullptr;
  t->run = [](task* self) {
    const std::uint64_t about = static_cast<go_on_task*>(self)->object;
    delete static_cast<go_on_task*>(self);
    objects_here->later_.erase(about);
    objects_here->rules().go_on(about);
  };
  post_task(t);
}

void objects_of_rank::refuse(const coherence::message& m, const char* why) {
  die("a message about copies of the object at 0x%llx %s: the ranks disagree, which is a fault of "
      "Sojourn",
      static_cast<unsigned long long>(m.object), why);
}

void objects_of_rank::tell_place(int to, const object_place_message& told) {
  if (to == job.me) return;
  send_reply(to, runtime_message::object_place, 0, 0, &told, sizeof told);
}

}  // namespace sojourn::detail
