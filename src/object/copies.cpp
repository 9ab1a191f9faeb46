// SPDX-License-Identifier: Apache-2.0
#include "object/copies.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/check.hpp"
#include "fiber/hooks.hpp"
#include "fiber/piece.hpp"
#include "fiber/ready_queue.hpp"
#include "fiber/scheduler.hpp"
#include "memory/runtime_resource.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/losses.hpp"
#include "message/message_reader.hpp"
#include "message/outbound.hpp"
#include "message/programs.hpp"
#include "object/coherence/rank_objects.hpp"
#include "object/copied_objects.hpp"
#include "object/copy_memory.hpp"
#include "object/waiting_calls.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/copies.hpp"
#include "sojourn/detail/marshalled.hpp"
#include "sojourn/detail/owner.hpp"
#include "sojourn/detail/tasks.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

using coherence::call_name;
using coherence::message;
using coherence::woken;

constexpr std::size_t usual_cache_bytes = 64u << 20;

std::size_t cache_bytes() {
  const char* text = std::getenv("SOJOURN_CACHE_BYTES");
  if (text == nullptr || *text == 0) return usual_cache_bytes;
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  const std::string_view unit = end;
  unsigned shift = 0;
  if (unit == "K")
    shift = 10;
  else if (unit == "M")
    shift = 20;
  else if (unit == "G")
    shift = 30;
  const bool is_number = *text >= '0' && *text <= '9' && (unit.empty() || shift != 0);
  if (!is_number || number > (1ull << 40) >> shift)
    throw error(
        format("SOJOURN_CACHE_BYTES=%s is no number of bytes, such as 67108864 or 64M", text));
  return static_cast<std::size_t>(number) << shift;
}

/// A message of the protocol, before the bytes of the object if it brings any.
struct copies_message {
  coherence::kind what;
  coherence::outcome how;
  std::uint16_t unused;
  std::int32_t caller;
  std::uint64_t number;
  std::uint64_t address;
  std::uint64_t bytes;  ///< Of the object.
};
/// What stands before a call that asks for a copy.
struct copy_or_call_header {
  std::uint64_t address;
  std::uint64_t number;
  std::uint32_t bytes;
  std::uint16_t handler;
  std::uint16_t unused;
  std::uint64_t unused_too;
};
static_assert(sizeof(copy_or_call_header) % 16 == 0);

}  // namespace

/// All that a rank does about copies.
class copies_of_rank final : public coherence::services, in_runtime_memory {
 public:
  using in_runtime_memory::operator new;
  using in_runtime_memory::operator delete;

  explicit copies_of_rank(std::size_t most) : most_(most) {}

  // What calls do here. On fibers.
  asks_for_copy::then start(asks_for_copy& asks);
  asks_for_copy::then wait(asks_for_copy& asks, ticket_id ticket);
  void end(asks_for_copy& asks);
  bool begin_change(std::uint64_t address, std::size_t bytes);
  void end_change(std::uint64_t address, std::size_t bytes);
  void give_up_copies(std::uint64_t address, std::size_t bytes);
  void serve_copy_or_call(request& m);

  // What messages and the scheduler do here.
  void arrive(const arrival& a, const copies_message& m);
  bool refresh(piece* p);
  void note_end_of(int rank);
  std::uint64_t original(std::uint64_t address) const { return memory_->original(address); }

  // coherence::services
  int ranks() const override { return job.count; }
  int home_of(std::uint64_t object) const override { return owner_of(object); }
  int guess(std::uint64_t object) const override { return owner_of(object); }
  void note_place(std::uint64_t, int) override {}
  bool has_ended(int rank) const override { return is_lost(rank); }
  coherence::in_progress methods_in(std::uint64_t object) const override;
  void send(int to, const message& m) override;
  void forget_object(std::uint64_t) override {}
  void destroy(std::uint64_t) override {}
  void forget_copy(std::uint64_t object) override;
  void run(std::uint64_t object, const coherence::call& c) override;
  void wake(std::uint64_t object, const call_name& c, woken how) override;
  void go_on_later(std::uint64_t object) override;
  void refuse(const message& m, const char* why) override;

 private:
  /// A ready piece whose copies are being made as their objects are.
  struct refreshing {
    piece* of;
    copy_block* block;
  };
  struct go_on_task : task {
    std::uint64_t object;
  };

  coherence::rank_objects rules() { return {known_, *this, job.me}; }
  copy_memory& memory();
  void send_request(int to, const copies_message& m);
  bool may_change_now(std::uint64_t address);
  void take_copies_back(const std::vector<copied_object*>& which);
  void note_copied(bool any);
  void forget_if_settled(copied_object* object);
  void bring(copy_block* block, const std::byte* bytes);

  coherence::known_objects known_;
  copied_objects copied_;
  std::size_t most_;
  std::unique_ptr<copy_memory> memory_;
  waiting_calls waiting_;
  std::uint64_t next_refreshing_ = std::uint64_t{1} << 63;  ///< Not a number of waiting_.
  std::unordered_map<std::uint64_t, refreshing> refreshing_;
  std::unordered_map<piece*, unsigned> refreshes_;  ///< How many of its copies are awaited.
  std::unordered_set<piece*> refreshed_;
  std::unordered_set<std::uint64_t> later_;
  const std::byte* arriving_ = nullptr;  ///< The bytes of the message that is being looked at.
  std::size_t arriving_bytes_ = 0;
  std::uint64_t asked_bytes_ = 0;   ///< By a message, or by a method that goes on.
  std::vector<std::byte> leaving_;  ///< The message that is being sent.
  bool runs_call_ = false;
};

namespace {

copies_of_rank* here = nullptr;

/// A hold in the frames of a suspended piece, which need not be in their place.
hold hold_of(const piece* p, const hold* at) {
  const auto address = reinterpret_cast<std::uint64_t>(at);
  if (address >= p->in_place_from) return *at;
  hold copy{nullptr};
  std::memcpy(&copy, p->image + (address - p->sp), sizeof copy);
  return copy;
}

/// The copies on which methods run, or are suspended.
std::vector<const copy_block*> copies_in_use() {
  std::vector<const copy_block*> used;
  if (running_piece() != nullptr) {
    const std::uint64_t end = running_piece()->hi;
    for (const hold* h = running.holds; h != nullptr && reinterpret_cast<std::uint64_t>(h) < end;
         h = h->outer) {
      if (h->what == hold::kind::copy) used.push_back(static_cast<const copy_block*>(h->of));
    }
  }
  each_piece(
      [](piece* p, void* context) {
        if (p == running_piece() || p == spare_piece()) return;
        for (const hold* h = p->holds;
             h != nullptr && reinterpret_cast<std::uint64_t>(h) < p->hi;) {
          const hold read = hold_of(p, h);
          if (read.what == hold::kind::copy)
            static_cast<std::vector<const copy_block*>*>(context)->push_back(
                static_cast<const copy_block*>(read.of));
          h = read.outer;
        }
      },
      &used);
  return used;
}

/// Refuses what no rank sends.
void check(const arrival& a, const copies_message& m) {
  using coherence::kind;
  const int owner = owner_of(m.address);
  const bool is_to_owner = m.what == kind::refresh || m.what == kind::acknowledged;
  const bool is_from_owner =
      m.what == kind::invalidate || m.what == kind::grant || m.what == kind::bytes;
  if (!is_to_owner && !is_from_owner) refuse_arrival(a, "is of no kind that there is");
  if (owner != (is_to_owner ? job.me : a.source))
    refuse_arrival(a, "is about an object of another rank");
  if (coherence::is_reply(m.what) != (a.kind == message_class::reply))
    refuse_arrival(a, "came among messages of another class");
  if (m.what == kind::refresh && m.caller != a.source)
    refuse_arrival(a, "names a call of another rank");
}

void on_copies_message(arrival& a, const copies_message& m) {
  check(a, m);
  here->arrive(a, m);
  wire().consume(a);
}

}  // namespace

copy_memory& copies_of_rank::memory() {
  if (memory_ == nullptr) {
    try {
      memory_ = std::make_unique<copy_memory>(most_);
    } catch (const std::bad_alloc&) {
      // Few addresses are left (ulimit -v): there is room for few copies.
      memory_ = std::make_unique<copy_memory>(0);
    }
    job.copies = memory_->first_address();
    job.copies_bytes = memory_->address_bytes();
  }
  return *memory_;
}

// ---- Calls that ask for a copy ------------------------------------------------------------------

asks_for_copy::then copies_of_rank::start(asks_for_copy& asks) {
  using then = asks_for_copy::then;
  copy_memory& copies_here = memory();
  if (copy_block* const block = copies_here.find(asks.address_);
      block != nullptr && block->bytes == asks.bytes_) {
    ++counts.cache_hits;
    asks.copy_ = block;
    return then::on_copy;
  }
  ++counts.cache_misses;
  // An object of another length has its copy at the same address: a base, or a member.
  if (copies_here.find(asks.address_) != nullptr) return then::by_result;
  // The call that goes along names its method by number.
  if (runs_other_program(asks.to)) return then::by_result;
  while (copies_here.is_over() && copies_here.oldest() != nullptr) {
    if (!rules().evict(copies_here.oldest()->address)) break;
    ++counts.copies_evicted;
  }
  if (copies_here.is_over()) return then::by_result;
  copy_block* const room = copies_here.take(asks.address_, asks.bytes_);
  if (room == nullptr) return then::by_result;
  asks.number_ = waiting_.open();
  const coherence::call c{{job.me, asks.number_}, false, nullptr};
  switch (rules().access(asks.address_, c, coherence::ask::for_copy)) {
    case coherence::next::lost:
      copies_here.give_back(room);
      waiting_.close(asks.number_);
      throw_rank_lost(asks.to, "a call");
    case coherence::next::run_on_copy:
    case coherence::next::run_on_object:
      copies_here.give_back(room);
      waiting_.close(asks.number_);
      return then::by_result;
    case coherence::next::wait:
      break;
  }
  const coherence::entry* const known = known_.entries.find(asks.address_);
  const bool asks_itself = known != nullptr && known->asks_for_copy.number == asks.number_;
  asks.is_open_ = true;
  if (asks_itself) {
    waiting_.find(asks.number_)->room = room;
    return then::send;
  }
  copies_here.give_back(room);
  return then::wait;
}

asks_for_copy::then copies_of_rank::wait(asks_for_copy& asks, ticket_id ticket) {
  using then = asks_for_copy::then;
  if (ticket == 0) ticket = ticket_open();
  if (waiting_call& waits = *waiting_.find(asks.number_); waits.told < 0) {
    waits.ticket = ticket;
    ticket_wait(ticket);
  }
  const int told = waiting_.find(asks.number_)->told;
  end(asks);
  if (told < 0) return then::by_result;  // the result of the call itself has come
  ticket_drop(ticket);
  switch (static_cast<woken>(told)) {
    case woken::on_copy:
      rules().begin(asks.address_);
      asks.copy_ = memory().find(asks.address_);
      if (asks.copy_ == nullptr && is_lost(asks.to)) throw_rank_lost(asks.to, "a call");
      SOJOURN_CHECK(asks.copy_ != nullptr, "a copy has gone before its first use");
      if (asks.copy_->bytes == asks.bytes_) return then::on_copy;
      return then::by_result;
    case woken::lost:
      throw_rank_lost(asks.to, "a call");
    default:
      return then::by_result;
  }
}

asks_for_copy::then asks_for_copy::start() { return here->start(*this); }
asks_for_copy::then asks_for_copy::wait(ticket_id ticket) { return here->wait(*this, ticket); }

outgoing asks_for_copy::begin(std::size_t payload_bytes) const {
  outgoing out = begin_fixed_request(to, sizeof(copy_or_call_header) + payload_bytes, true);
  const copy_or_call_header header{.address = address_,
                                   .number = number_,
                                   .bytes = static_cast<std::uint32_t>(bytes_),
                                   .handler = 0,
                                   .unused = 0,
                                   .unused_too = 0};
  std::memcpy(out.payload, &header, sizeof header);
  out.payload += sizeof header;
  return out;
}

void asks_for_copy::commit(const outgoing& out, std::uint16_t handler) const {
  std::memcpy(out.payload - sizeof(copy_or_call_header) + offsetof(copy_or_call_header, handler),
              &handler, sizeof handler);
  commit_request(to, handler_number(fixed_handler::copy_or_call), out.ticket);
}

/// The call waits no more, or has never been sent.
void copies_of_rank::end(asks_for_copy& asks) {
  asks.is_open_ = false;
  const waiting_call was = waiting_.close(asks.number_);
  if (was.room != nullptr) memory().give_back(was.room);
  if (was.told < 0) rules().ended(asks.address_, {job.me, asks.number_});
}

asks_for_copy::~asks_for_copy() {
  if (is_open_) here->end(*this);
}

std::uint64_t find_original(std::uint64_t address) { return here->original(address); }

// ---- The owner ----------------------------------------------------------------------------------

void copies_of_rank::note_copied(bool any) {
  if (job.has_copied == any) return;
  job.has_copied = any;
  if (!checked()) job.quick_heap_bytes = any ? 0 : job.my_heap_bytes;
  let_all_handlers_wait(any);
}

void copies_of_rank::serve_copy_or_call(request& m) {
  copy_or_call_header head;
  if (m.bytes < sizeof head) return refuse_request(m, sizeof head);
  std::memcpy(&head, m.payload, sizeof head);
  request inner = m;
  inner.payload += sizeof head;
  inner.bytes -= static_cast<std::uint32_t>(sizeof head);
  copied_object* object = copied_.find(head.address);
  bool may_have_copy = is_here(head.address, head.bytes) && head.bytes != 0;
  if (object == nullptr && may_have_copy) {
    may_have_copy = !copied_.overlaps(head.address, head.bytes) &&
                    !copied_.is_changed_with(head.address, head.bytes) &&
                    !may_be_in_use(head.address, head.bytes);
    if (may_have_copy) {
      object = &copied_.add(head.address, head.bytes);
      note_copied(true);
    }
  }
  if (object == nullptr || object->bytes != head.bytes) return run_contained(head.handler, inner);
  // Checked mode: the first call of an object runs here, where the object is checked.
  if (checked() && !std::exchange(object->is_checked, true))
    return run_contained(head.handler, inner);
  runs_call_ = false;
  rules().arrive(m.source,
                 {.what = coherence::kind::copy,
                  .object = head.address,
                  .about = {.name = {m.source, head.number}, .writes = false, .body = nullptr},
                  .hops = 1});
  if (std::exchange(runs_call_, false)) return run_contained(head.handler, inner);
  object->changes_in_vain = 0;
  inner.consume();
}

void copies_of_rank::run(std::uint64_t, const coherence::call&) { runs_call_ = true; }

coherence::in_progress copies_of_rank::methods_in(std::uint64_t object) const {
  copied_object* const known = const_cast<copied_objects&>(copied_).find(object);
  const bool changes = known != nullptr && (known->changing != 0 ||
                                            copied_.is_changed_with(known->address, known->bytes));
  return changes ? coherence::in_progress::writing : coherence::in_progress::nothing;
}

/// Suspends until no rank has a copy of the object. False when none had.
bool copies_of_rank::may_change_now(std::uint64_t address) {
  if (rules().is_quiet(address)) return false;
  stays_here stays;
  const call_name name{job.me, waiting_.open()};
  if (rules().access(address, {name, true, nullptr}, coherence::ask::to_run) ==
      coherence::next::run_on_object) {
    waiting_.close(name.number);
    return true;
  }
  ticket_id ticket = ticket_open();
  waiting_.find(name.number)->ticket = ticket;
  ticket_wait(ticket);
  waiting_.close(name.number);
  ticket_drop(ticket);
  rules().begin(address);
  return true;
}

bool copies_of_rank::begin_change(std::uint64_t address, std::size_t bytes) {
  if (copied_object* const whole = copied_.find(address);
      whole != nullptr && whole->bytes == bytes) {
    // Noted first: no copies are given while a change is in progress.
    ++whole->changing;
    const bool had_copies = may_change_now(address);
    if (copied_object* const object = copied_.find(address))
      object->changes_in_vain = had_copies ? 0 : object->changes_in_vain + 1;
    return true;
  }
  // No object that was ever copied, or a whole that such an object is a part of, or a part.
  copied_.begin_change_of(address, bytes);
  take_copies_back(copied_.overlapping(address, bytes));
  return true;
}

void copies_of_rank::end_change(std::uint64_t address, std::size_t bytes) {
  copied_object* const object = copied_.find(address);
  if (object == nullptr || object->bytes != bytes || object->changing == 0)
    return copied_.end_change_of(address, bytes);
  --object->changing;
  forget_if_settled(object);
}

/// Suspends until no rank has copies of these objects, which are looked up again after each wait.
void copies_of_rank::take_copies_back(const std::vector<copied_object*>& which) {
  std::vector<std::uint64_t> where;
  for (const copied_object* object : which) where.push_back(object->address);
  for (const std::uint64_t address : where) {
    if (copied_.find(address) == nullptr) continue;  // destroyed meanwhile
    ++copied_.find(address)->changing;
    (void)may_change_now(address);
    if (copied_object* const object = copied_.find(address)) --object->changing;
  }
}

/// An object that is changed again and again, while nobody copies it, is a usual one again.
void copies_of_rank::forget_if_settled(copied_object* object) {
  constexpr unsigned enough = 8;
  if (object->changing != 0 || object->changes_in_vain < enough ||
      known_.entries.find(object->address) != nullptr)
    return;
  copied_.remove(object->address);
  note_copied(!copied_.empty());
}

void copies_of_rank::give_up_copies(std::uint64_t address, std::size_t bytes) {
  copied_.begin_change_of(address, bytes);
  take_copies_back(copied_.overlapping(address, bytes));
  copied_.end_change_of(address, bytes);
  for (const copied_object* object : copied_.overlapping(address, bytes)) {
    // Methods that are still suspended in a destroyed object find nothing to end.
    copied_.remove(object->address);
  }
  note_copied(!copied_.empty());
}

bool begin_change(std::uint64_t address, std::size_t bytes) {
  return here->begin_change(address, bytes);
}
void end_change(std::uint64_t address, std::size_t bytes) { here->end_change(address, bytes); }
void give_up_copies(std::uint64_t address, std::size_t bytes) {
  here->give_up_copies(address, bytes);
}

// ---- Messages -----------------------------------------------------------------------------------

void copies_of_rank::send_request(int to, const copies_message& m) {
  struct waiting {
    int to;
    copies_message what;
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

void copies_of_rank::send(int to, const message& m) {
  using coherence::kind;
  const copied_object* const object = copied_.find(m.object);
  copies_message told{
      m.what,
      m.how,
      0,
      m.about.name.rank,
      m.about.name.number,
      m.object,
      m.what == coherence::kind::bytes || object == nullptr ? asked_bytes_ : object->bytes};
  switch (m.what) {
    case kind::copy:
      return;  // asks_for_copy sends it, with the call that it is about
    case kind::refresh:
    case kind::invalidate:
      if (m.what == kind::invalidate) ++counts.copies_taken_back;
      return send_request(to, told);
    case kind::grant:
    case kind::bytes: {
      if (m.what == kind::grant) ++counts.copies_given;
      if (!is_here(m.object, told.bytes)) told.bytes = 0;
      leaving_.resize(std::max(leaving_.size(), sizeof told + told.bytes));
      std::memcpy(leaving_.data(), &told, sizeof told);
      std::memcpy(leaving_.data() + sizeof told, reinterpret_cast<const void*>(m.object),
                  told.bytes);
      return send_reply(to, runtime_message::object_copies, 0, 0, leaving_.data(),
                        sizeof told + told.bytes);
    }
    default:
      return send_reply(to, runtime_message::object_copies, 0, 0, &told, sizeof told);
  }
}

void copies_of_rank::arrive(const arrival& a, const copies_message& m) {
  const message told{
      .what = m.what, .object = m.address, .about = {.name = {m.caller, m.number}}, .how = m.how};
  arriving_ = a.payload + sizeof m;
  arriving_bytes_ = a.bytes - sizeof m;
  asked_bytes_ = m.bytes;
  rules().arrive(a.source, told);
}

void copies_of_rank::bring(copy_block* block, const std::byte* bytes) {
  std::memcpy(block->object(), bytes, block->bytes);
}

void copies_of_rank::forget_copy(std::uint64_t object) {
  if (copy_block* const block = memory().find(object)) {
    memory_->make_old(block);
    // Which are in use is not counted, because that would be counted at each use.
    constexpr std::size_t many = 64;
    if (memory_->old_ones() >= many) memory_->free_old(copies_in_use());
    on_fiber.copies.any_is_old = memory_->old_ones() != 0;
  }
}

void copies_of_rank::wake(std::uint64_t object, const call_name& c, woken how) {
  if (const auto known = refreshing_.find(c.number); known != refreshing_.end()) {
    const refreshing r = known->second;
    refreshing_.erase(known);
    // Without bytes, because the object or its rank is gone, the method ends on those that it has.
    if (how == woken::refreshed && arriving_bytes_ == r.block->bytes) bring(r.block, arriving_);
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
    if (block == nullptr || block->bytes != arriving_bytes_)
      die("a copy of the object at 0x%llx has come with %zu bytes, and this rank has asked for %u",
          static_cast<unsigned long long>(object), arriving_bytes_,
          block == nullptr ? 0u : block->bytes);
    bring(block, arriving_);
    memory_->make_good(block);
  }
  waits.told = static_cast<int>(how);
  if (waits.ticket != 0) send_result(waits.ticket, nullptr, 0);
}

void copies_of_rank::go_on_later(std::uint64_t object) {
  if (!later_.insert(object).second) return;
  auto* t = new go_on_task;
  t->object = object;
  t->scope = nullptr;
  t->run = [](task* self) {
    const std::uint64_t about = static_cast<go_on_task*>(self)->object;
    delete static_cast<go_on_task*>(self);
    here->later_.erase(about);
    here->rules().go_on(about);
  };
  post_task(t);
}

void copies_of_rank::refuse(const message& m, const char* why) {
  die("a message about copies of the object at 0x%llx %s: the ranks disagree, which is a fault of "
      "Sojourn",
      static_cast<unsigned long long>(m.object), why);
}

// ---- Methods that were suspended on copies ------------------------------------------------------

bool copies_of_rank::refresh(piece* p) {
  const bool is_refreshed = refreshed_.erase(p) != 0;
  unsigned awaited = 0;
  std::vector<copy_block*> seen;
  for (const hold* h = p->holds; h != nullptr && reinterpret_cast<std::uint64_t>(h) < p->hi;) {
    const hold read = hold_of(p, h);
    h = read.outer;
    if (read.what != hold::kind::copy) continue;
    auto* const block = static_cast<copy_block*>(read.of);
    if (block->is_good || std::find(seen.begin(), seen.end(), block) != seen.end()) continue;
    seen.push_back(block);
    // Also after a refresh: another fiber may have had a newer copy since.
    if (copy_block* const good = memory_->find(block->address);
        good != nullptr && good->bytes >= block->bytes) {
      bring(block, static_cast<std::byte*>(good->object()));
      continue;
    }
    if (is_refreshed) continue;
    const call_name name{job.me, next_refreshing_++};
    refreshing_[name.number] = {p, block};
    asked_bytes_ = block->bytes;
    if (rules().resume_on_copy(block->address, {name, false, nullptr})) {
      refreshing_.erase(name.number);  // the owner has ended
    } else {
      ++awaited;
    }
  }
  if (awaited == 0) return false;
  refreshes_[p] = awaited;
  return true;
}

void copies_of_rank::note_end_of(int rank) {
  arriving_bytes_ = 0;
  rules().note_end_of(rank);
}

void fail_copies_of(int rank) {
  if (here != nullptr) here->note_end_of(rank);
}

void attach_copies() {
  here = new copies_of_rank(cache_bytes());
  on_request(fixed_handler::copy_or_call, [](request& m) { here->serve_copy_or_call(m); }, false);
  on_message<copies_message, on_copies_message>(runtime_message::object_copies);
  on_fiber.copies.refresh = [](piece* p) { return here->refresh(p); };
}

}  // namespace sojourn::detail
