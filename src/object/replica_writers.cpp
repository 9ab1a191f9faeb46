// SPDX-License-Identifier: Apache-2.0
#include "object/replica_writers.hpp"

#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/saved_file.hpp"
#include "fiber/ready_queue.hpp"
#include "fiber/scheduler.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/ticket.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

/// What the protocol asks of this rank, about one object.
class replica_writers::services final : public replicas::writer_services {
 public:
  services(replica_writers& all, published_object& of) : all_(all), of_(of) {}

  replicas::writer rules() { return {of_.state, *this}; }

  void send(int to, const replicas::message& m) override {
    if (m.what == replicas::kind::push) ++counts.versions_pushed;
    if (!m.brings) return send_about_replica(to, of_.name, m);
    send_about_replica(to, of_.name, m, of_.bytes(), of_.byte_count());
  }
  void wake(std::uint64_t call) override {
    const auto waits = all_.waiting_.find(call);
    const ticket_id ticket = waits->second;
    all_.waiting_.erase(waits);
    send_result(ticket, nullptr, 0);
  }

 private:
  replica_writers& all_;
  published_object& of_;
};

namespace {

[[noreturn]] void refuse_destroyed() {
  throw replicated_destroyed(
      format("a replicated object of rank %d is used after it was destroyed", job.me));
}

/// The version as it is sent, if its type is marshalled.
std::vector<std::byte> encoded(const version_block& block) {
  const replica_type& type = *block.type;
  std::vector<std::byte> bytes;
  if (!type.is_plain) bytes = type.write(block.object);
  const std::size_t size = type.is_plain ? type.bytes : bytes.size();
  if (size > longest_version)
    throw error(
        format("a version of a replicated object takes %zu bytes in a message, and at most %zu go: "
               "divide the object into several",
               size, longest_version));
  return bytes;
}

}  // namespace

void replica_writers::enter(published_object& of) {
  of.newest->number = of.state.newest;
  place_of(of.name) = {of.name.number, of.newest->object};
}

replica_name replica_writers::make(const replica_type& type,
                                   void (*init)(void* memory, void* context), void* context) {
  auto of = std::make_unique<published_object>();
  of->type = &type;
  of->newest = memory_.take(type);
  try {
    init(of->newest->object, context);
  } catch (...) {
    memory_.give_back(of->newest);
    throw;
  }
  try {
    if (free_slots_.empty() && next_slot_ == replica_slots)
      throw error(
          format("rank %d has %llu replicated objects, and a rank can have no more: destroy "
                 "some, or divide the work of writing among ranks",
                 job.me, static_cast<unsigned long long>(replica_slots - 1)));
    of->encoded = encoded(*of->newest);
  } catch (...) {
    memory_.discard(of->newest);
    throw;
  }
  // Looked at only now: a constructor may make replicated objects itself.
  std::uint64_t slot = next_slot_;
  if (free_slots_.empty()) {
    ++next_slot_;
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  const auto me = static_cast<std::uint64_t>(job.me);
  of->name = {(me * replica_slots + slot) * sizeof(replica_place), ++made_};
  enter(*of);
  const replica_name name = of->name;
  objects_[name.at] = std::move(of);
  return name;
}

const published_object* replica_writers::find(const replica_name& name) const {
  const auto known = objects_.find(name.at);
  if (known == objects_.end() || known->second->name.number != name.number) return nullptr;
  return known->second->newest != nullptr ? known->second.get() : nullptr;
}

published_object& replica_writers::at(const replica_name& name) {
  const published_object* const known = find(name);
  if (known == nullptr) refuse_destroyed();
  return const_cast<published_object&>(*known);
}

// ---- Updates ------------------------------------------------------------------------------------

published_object& replica_writers::begin_update(const replica_name& name) {
  published_object& of = at(name);
  ++of.users;
  if (of.is_updated) {
    (void)wait_in(of.turn);
  } else {
    of.is_updated = true;
  }
  if (of.newest == nullptr) {
    end_turn(of);
    end_use(of);
    refuse_destroyed();
  }
  return of;
}

/// Hands the turn over to the update that has waited longest, so that none that comes now is before
/// it.
void replica_writers::end_turn(published_object& of) {
  if (of.turn.empty()) {
    of.is_updated = false;
  } else {
    make_ready(take_waiter(of.turn), resumed::here);
  }
}

void replica_writers::end_use(published_object& of) {
  if (--of.users != 0 || of.newest != nullptr) return;
  free_slots_.push_back(of.name.at / sizeof(replica_place) % replica_slots);
  objects_.erase(of.name.at);
}

replicas::version replica_writers::publish(published_object& of, version_block*& next) {
  std::vector<std::byte> bytes = encoded(*next);
  version_block* const old = std::exchange(of.newest, std::exchange(next, nullptr));
  of.encoded = std::move(bytes);
  ++counts.versions_published;
  const replicas::version number = services(*this, of).rules().publish();
  enter(of);
  memory_.retire(old, running_piece() != nullptr);
  return number;
}

void replica_writers::wait_for_subscribers(published_object& of, replicas::version number,
                                           replicas::version behind) {
  const std::uint64_t call = ++calls_;
  if (services(*this, of).rules().is_near(call, number, behind)) return;
  ticket_id ticket = ticket_open();
  waiting_[call] = ticket;
  ticket_wait(ticket);
  ticket_drop(ticket);
}

void replica_writers::end(const replica_name& name) {
  const stays_here stays;
  published_object& of = begin_update(name);
  place_of(of.name) = {0, nullptr};
  services(*this, of).rules().end();
  memory_.retire(std::exchange(of.newest, nullptr), running_piece() != nullptr);
  of.encoded = {};
  end_turn(of);
  end_use(of);
}

// ---- What happens to this rank ------------------------------------------------------------------

void replica_writers::arrive(const arrival& a, const replicas_message& m) {
  if (find(m.of) != nullptr) return services(*this, at(m.of)).rules().arrive(a.source, m.told());
  // It has been destroyed.
  replicas::message answer{
      .how = replicas::outcome::destroyed, .of = m.subscription, .number = 0, .call = m.call};
  if (m.what == replicas::kind::pushed) return;
  answer.what =
      m.what == replicas::kind::subscribe ? replicas::kind::subscribed : replicas::kind::refreshed;
  send_about_replica(a.source, m.of, answer);
}

void replica_writers::note_end_of(int rank) {
  for (const auto& [at, of] : objects_) services(*this, *of).rules().note_end_of(rank);
}

// ---- Checkpoints --------------------------------------------------------------------------------

void replica_writers::save(file_writer& to) const {
  to.put(made_);
  to.put(next_slot_);
  to.put(free_slots_.size());
  for (const std::uint64_t slot : free_slots_) to.put(slot);
  to.put(objects_.size());
  for (const auto& [at, of] : objects_) {
    to.put(of->name);
    // The program is the same, at the same addresses.
    to.put(of->type);
    to.put(of->state.newest);
    to.put(of->byte_count());
    to.bytes(of->bytes(), of->byte_count());
  }
}

void replica_writers::load(file_reader& from) {
  from.get(made_);
  from.get(next_slot_);
  for (auto left = from.get<std::size_t>(); left > 0; --left)
    free_slots_.push_back(from.get<std::uint64_t>());
  for (auto left = from.get<std::size_t>(); left > 0; --left) {
    auto of = std::make_unique<published_object>();
    from.get(of->name);
    from.get(of->type);
    from.get(of->state.newest);
    std::vector<std::byte> bytes(from.get<std::size_t>());
    from.bytes(bytes.data(), bytes.size());
    of->newest = memory_.take(*of->type);
    if (of->type->is_plain) {
      std::memcpy(of->newest->object, bytes.data(), bytes.size());
    } else {
      of->type->read(of->newest->object, bytes.data(), bytes.size());
      of->encoded = std::move(bytes);
    }
    enter(*of);
    objects_[of->name.at] = std::move(of);
  }
}

}  // namespace sojourn::detail
