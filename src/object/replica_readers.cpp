// SPDX-License-Identifier: Apache-2.0
#include "object/replica_readers.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "frames/symbols.hpp"
#include "message/losses.hpp"
#include "message/programs.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/ticket.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

using replicas::next;
using replicas::woken;

/// What the protocol asks of this rank, about one object.
class replica_readers::services final : public replicas::reader_services {
 public:
  services(replica_readers& all, object& of) : all_(all), of_(of) {}

  replicas::reader rules() { return {of_.state, *this}; }

  void send(const replicas::message& m) override {
    send_about_replica(of_.name.writer(), of_.name, m);
  }
  void install(replicas::version number) override {
    version_block* const old = std::exchange(of_.block, std::exchange(all_.arriving_, nullptr));
    of_.block->number = number;
    place_of(of_.name) = {of_.name.number, of_.block->object};
    if (old != nullptr) all_.memory_.retire(old, true);
  }
  void forget() override {
    // Another object may have the entry by now, if this one has been destroyed.
    replica_place& place = place_of(of_.name);
    if (place.number == of_.name.number) place = {0, nullptr};
    all_.memory_.retire(std::exchange(of_.block, nullptr), true);
  }
  void wake(std::uint64_t call, woken how) override {
    waiting& w = all_.waiting_[call];
    w.told = static_cast<int>(how);
    if (w.ticket != 0) send_result(w.ticket, nullptr, 0);
  }
  void refuse(const replicas::message&, const char* why) override {
    die("a message from rank %d about a replicated object %s: the ranks disagree, which is a fault "
        "of Sojourn",
        of_.name.writer(), why);
  }

 private:
  replica_readers& all_;
  object& of_;
};

replica_readers::object* replica_readers::find_object(const replica_name& name) {
  const auto known = objects_.find({name.at, name.number});
  return known == objects_.end() ? nullptr : &known->second;
}

replica_readers::object& replica_readers::at(const replica_name& name, const replica_type& type) {
  const auto [where, is_new] = objects_.try_emplace({name.at, name.number});
  if (is_new) {
    where->second.name = name;
    where->second.type = &type;
    where->second.state.latest = latest_forgotten_;
    where->second.state.is_lost = is_lost(name.writer());
  }
  return where->second;
}

void replica_readers::tidy(object& o) {
  if (o.state.here != 0 || o.state.asks || !o.state.waiting.empty()) return;
  // A subscription of an object that is used again must not have the number of an earlier one.
  latest_forgotten_ = std::max(latest_forgotten_, o.state.latest);
  objects_.erase({o.name.at, o.name.number});
}

// ---- Calls of this rank -------------------------------------------------------------------------

woken replica_readers::wait(std::uint64_t call) {
  if (waiting_[call].told < 0) {
    ticket_id ticket = ticket_open();
    waiting_[call].ticket = ticket;
    ticket_wait(ticket);
    ticket_drop(ticket);
  }
  const auto known = waiting_.find(call);
  const auto how = static_cast<woken>(known->second.told);
  waiting_.erase(known);
  return how;
}

/// Asks the protocol by how(rules, call). True when that made this fiber wait.
template <class Ask>
bool replica_readers::ask(const replica_name& name, const replica_type& type, Ask how) {
  if (runs_other_program(name.writer()))
    throw different_program(
        format("rank %d uses a replicated object of rank %d, which runs another program", job.me,
               name.writer()));
  const stays_here stays;
  const std::uint64_t call = ++calls_;
  object& of = at(name, type);
  services by(*this, of);
  next then = how(by.rules(), call);
  if (then == next::go_on) return false;
  const bool waits = then == next::wait;
  if (waits) {
    const woken told = wait(call);
    then = told == woken::here ? next::go_on : told == woken::ended ? next::ended : next::lost;
  }
  // It may have been forgotten meanwhile.
  if (object* const still = find_object(name)) tidy(*still);
  if (then == next::ended)
    throw replicated_destroyed(
        format("a replicated object of rank %d is used after it was destroyed", name.writer()));
  if (then == next::lost) throw_rank_lost(name.writer(), "a replicated object");
  return waits;
}

void* replica_readers::find(const replica_name& name, const replica_type& type) {
  ++counts.replica_misses;
  // What has come may have been given up again before this fiber goes on.
  while (ask(name, type, [](replicas::reader r, std::uint64_t call) { return r.read(call); })) {
  }
  void* const found = find_object(name)->block->object;
  // The entry may be that of an object which had this one's place before, and has just ended.
  place_of(name) = {name.number, found};
  return found;
}

void replica_readers::refresh(const replica_name& name, const replica_type& type) {
  (void)ask(name, type, [](replicas::reader r, std::uint64_t call) { return r.refresh(call); });
}

void replica_readers::see(const replica_name& name, const replica_type& type,
                          replicas::version number) {
  if (find_object(name) == nullptr) return;  // the first read will see it
  try {
    (void)ask(name, type,
              [&](replicas::reader r, std::uint64_t call) { return r.see(call, number); });
  } catch (const replicated_destroyed&) {
    // After the update: it was made.
  } catch (const rank_lost&) {
    // The same.
  }
}

void replica_readers::drop(const replica_name& name) {
  object* const known = find_object(name);
  if (known == nullptr) return;
  services(*this, *known).rules().drop();
  tidy(*known);
}

replicas::version replica_readers::version_here(const replica_name& name) const {
  const auto known = objects_.find({name.at, name.number});
  return known == objects_.end() ? 0 : known->second.state.here;
}

// ---- What happens to this rank ------------------------------------------------------------------

/// The version in a message, after its first `from` bytes.
version_block* replica_readers::read_arriving(const replica_type& type, const arrival& a,
                                              std::size_t from) {
  const std::byte* const bytes = a.payload + from;
  const std::size_t size = a.bytes - from;
  version_block* const block = memory_.take(type);
  if (type.is_plain) {
    if (size != type.bytes) refuse_arrival(a, "brings a version of another length than its type");
    std::memcpy(block->object, bytes, size);
    return block;
  }
  try {
    type.read(block->object, bytes, size);
  } catch (const std::exception& e) {
    die("a version of a replicated %s from rank %d cannot be read: %s",
        demangle_type(type.type->name()).c_str(), a.source, e.what());
  }
  return block;
}

void replica_readers::arrive(const arrival& a, const replicas_message& m) {
  using replicas::kind;
  object* const known = find_object(m.of);
  if (known == nullptr) {
    // It has been destroyed, and nobody asks for it here any more.
    if (m.what == kind::subscribed) refuse_arrival(a, "answers what nobody has asked");
    if (m.what == kind::push)
      send_about_replica(a.source, m.of,
                         {.what = kind::pushed,
                          .how = replicas::outcome::dropped,
                          .of = m.subscription,
                          .number = m.number});
    return;
  }
  if (m.brings != 0) arriving_ = read_arriving(*known->type, a, sizeof m);
  services(*this, *known).rules().arrive(m.told());
  if (arriving_ != nullptr) memory_.discard(std::exchange(arriving_, nullptr));
  tidy(*known);
}

void replica_readers::note_end_of(int rank) {
  for (auto& [key, o] : objects_) {
    if (o.name.writer() == rank) services(*this, o).rules().note_end_of_writer();
  }
}

}  // namespace sojourn::detail
