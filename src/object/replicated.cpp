// SPDX-License-Identifier: Apache-2.0
#include "object/replicated.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.hpp"
#include "fiber/piece.hpp"
#include "memory/runtime_resource.hpp"
#include "message/inbound.hpp"
#include "message/loop.hpp"
#include "message/outbound.hpp"
#include "object/replica_messages.hpp"
#include "object/replica_readers.hpp"
#include "object/replica_writers.hpp"
#include "object/version_memory.hpp"
#include "sojourn/detail/replicas.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

// Calls outside a job look here, find nothing, and are then refused.
replica_place no_place{};

}  // namespace

replica_place* replica_places = &no_place;

namespace {

/// All that a rank has of replicated objects.
struct replicas_of_rank : in_runtime_memory {
  version_memory memory;
  replica_readers readers{memory};
  replica_writers writers{memory};
};
replicas_of_rank* here = nullptr;

bool is_own(const replica_name& name) { return name.writer() == job.me; }

std::size_t table_bytes() {
  return static_cast<std::size_t>(job.count) * replica_slots * sizeof(replica_place);
}

/// Refuses what no rank sends.
void check(const arrival& a, const replicas_message& m) {
  using replicas::kind;
  if (m.what > kind::pushed || m.how > replicas::outcome::destroyed)
    refuse_arrival(a, "is of no kind that there is");
  if (m.of.at >= table_bytes() || m.of.at % sizeof(replica_place) != 0)
    refuse_arrival(a, "is about an object that cannot be");
  if (m.of.writer() != (replicas::is_of_writer(m.what) ? a.source : job.me))
    refuse_arrival(a, "is about an object of another rank");
  if (replicas::is_reply(m.what) != (a.kind == message_class::reply))
    refuse_arrival(a, "came among messages of another class");
  if (replicas::is_of_writer(m.what) == is_own(m.of))
    refuse_arrival(a, "comes from the rank itself");
  const bool must_bring =
      m.what == kind::push || (m.what == kind::subscribed && m.how == replicas::outcome::done);
  if ((must_bring && m.brings == 0) || (m.brings != 0 && m.number == 0))
    refuse_arrival(a, "lacks a version");
}

void on_replicas_message(arrival& a, const replicas_message& m) {
  check(a, m);
  if (replicas::is_of_writer(m.what)) {
    here->readers.arrive(a, m);
  } else {
    here->writers.arrive(a, m);
  }
  wire().consume(a);
}

}  // namespace

int writer_of(const replica_name& name) {
  if (name == replica_name() || name.writer() >= job.count)
    throw error("this `replicated` names no object: make_replicated() returns one that does");
  return name.writer();
}

replica_name make_replica(const replica_type& type, void (*init)(void* memory, void* context),
                          void* context) {
  if (here == nullptr) refuse_outside_job("a replicated object");
  check_thread();
  return here->writers.make(type, init, context);
}

void* find_replica(const replica_name& name, const replica_type& type) {
  check_thread();
  (void)writer_of(name);
  if (is_own(name)) return here->writers.at(name).newest->object;
  return here->readers.find(name, type);
}

void refresh_replica(const replica_name& name, const replica_type& type) {
  check_thread();
  (void)writer_of(name);
  if (is_own(name)) return (void)here->writers.at(name);
  here->readers.refresh(name, type);
}

void see_version(const replica_name& name, const replica_type& type, std::uint64_t number) {
  if (!is_own(name)) here->readers.see(name, type, number);
}

void drop_replica(const replica_name& name) {
  check_thread();
  if (!is_own(name)) here->readers.drop(name);
}

std::uint64_t version_here(const replica_name& name) {
  if (here == nullptr) return 0;
  if (!is_own(name)) return here->readers.version_here(name);
  const published_object* const of = here->writers.find(name);
  return of == nullptr ? 0 : of->state.newest;
}

void end_replica(const replica_name& name) {
  check_thread();
  here->writers.end(name);
}

replica_update::replica_update(const replica_name& name, const replica_type& type)
    : of_(&here->writers.begin_update(name)), next_(nullptr) {
  try {
    next_ = here->memory.take(type);
    type.copy(next_->object, of_->newest->object);
  } catch (...) {
    if (next_ != nullptr) here->memory.give_back(next_);
    here->writers.end_turn(*of_);
    here->writers.end_use(*of_);
    throw;
  }
}

replica_update::~replica_update() {
  if (next_ != nullptr) {
    here->memory.discard(next_);
    here->writers.end_turn(*of_);
  }
  here->writers.end_use(*of_);
}

void* replica_update::next() const { return next_->object; }

std::uint64_t replica_update::publish(std::uint64_t behind) {
  replicas::version number = 0;
  try {
    number = here->writers.publish(*of_, next_);
  } catch (...) {
    if (next_ == nullptr) here->writers.end_turn(*of_);  // otherwise the destructor does
    throw;
  }
  here->writers.end_turn(*of_);
  here->writers.wait_for_subscribers(*of_, number, behind);
  return number;
}

bool reads_a_version(const piece* p) {
  if (p->methods >> read_guard::reads_shift != 0) return true;
  // A read may be open where one of its older marks was opened.
  if (!p->marks_hold_methods) return false;
  std::vector<version_block*> blocks = here->memory.retired();
  const auto add = [&](version_block* block) { blocks.push_back(block); };
  here->readers.each_block(add);
  here->writers.each_block(add);
  std::sort(blocks.begin(), blocks.end(), [](const version_block* a, const version_block* b) {
    return a->address() < b->address();
  });
  return version_memory::is_used_by(p, blocks);
}

void save_replicas(file_writer& to) { here->writers.save(to); }
void load_replicas(file_reader& from) { here->writers.load(from); }

void fail_replicas_of(int rank) {
  if (here == nullptr) return;
  here->readers.note_end_of(rank);
  here->writers.note_end_of(rank);
}

void attach_replicas() {
  void* const table = ::mmap(nullptr, table_bytes(), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED)
    throw error(format("no room for the table of replicated objects, of %zu bytes of addresses: %s",
                       table_bytes(), std::strerror(errno)));
  replica_places = static_cast<replica_place*>(table);
  here = new replicas_of_rank;
  on_message<replicas_message, on_replicas_message>(runtime_message::replicas);
}

}  // namespace sojourn::detail
