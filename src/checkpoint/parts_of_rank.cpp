// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/parts_of_rank.hpp"

#include <cstdint>
#include <cstring>
#include <utility>

#include "fiber/scheduler.hpp"
#include "fiber/ticket_table.hpp"
#include "fiber/timers.hpp"
#include "memory/arena_extents.hpp"
#include "memory/global_heap.hpp"
#include "memory/stack_slots.hpp"
#include "message/dispatcher.hpp"
#include "migrate/reading.hpp"
#include "migrate/thread/threads.hpp"
#include "migrate/thread_trailer.hpp"
#include "object/records.hpp"
#include "object/replicated.hpp"
#include "rpc/exceptions.hpp"
#include "rpc/stop.hpp"
#include "rpc/tickets.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

namespace {

const rank_to_save* saved = nullptr;  // while it is saved
restored_root loaded_root;

void save_root(file_writer& to) {
  const root_bytes& root = saved->root;
  const std::size_t type_size = std::strlen(root.type);
  to.put(type_size);
  to.bytes(root.type, type_size);
  to.put(root.size);
  to.bytes(root.bytes, root.size);
}
void load_root(file_reader& from) {
  loaded_root.type.resize(from.get<std::size_t>());
  from.bytes(loaded_root.type.data(), loaded_root.type.size());
  loaded_root.bytes.resize(from.get<std::size_t>());
  from.bytes(loaded_root.bytes.data(), loaded_root.bytes.size());
}

/// Reads what a restored fiber needs besides its bytes.
void take_in(piece* p, file_reader& from) {
  load_thread(p, from);
  if (p->keeps_slot) {
    slots.restore_user(p->slot);
    restore_resident();
  }
}
void save_fibers(file_writer& to) { save_pieces(to, saved->fibers, save_thread); }
void load_fibers(file_reader& from) { load_pieces(from, take_in); }

void save_extents(file_writer& to) { extents.save(to); }
void load_extents(file_reader& from) { extents.load(from); }

void save_slots(file_writer& to) { to.put(slots.handed_out()); }
void load_slots(file_reader& from) {
  slots.restore(from.get<std::uint32_t>());
  slots.free_unused();
}

void save_ready(file_writer& to) {
  for (piece* p = first_standing(); p != nullptr; p = p->next_ready) to.put(p);
  to.put(static_cast<piece*>(nullptr));
}
void load_ready(file_reader& from) {
  while (auto* p = from.get<piece*>()) set_aside(p);
}

void save_all_tickets(file_writer& to) { save_tickets(to, forwarded_to, encoded); }
void load_all_tickets(file_reader& from) { load_tickets(from, forward_result); }

void save_unanswered(file_writer& to) {
  for (int r = 0; r < job.count; ++r) to.put(unanswered_by(r));
}
void load_unanswered(file_reader& from) {
  for (int r = 0; r < job.count; ++r) restore_unanswered(r, from.get<std::uint32_t>());
}

std::vector<saved_part> parts_with(const saved_part& shared_memory) {
  return {
      {"root", save_root, load_root},
      // First, because its load compares where the runtime's tables lie: if they lie elsewhere,
      // nothing can be used.
      {"global heap", save_heap, load_heap},
      // Before all parts that take memory of the runtime, because descriptors of fibers must lie
      // where they lay. The heaps of threads come with their fibers.
      {"fibers", save_fibers, load_fibers},
      {"memory of threads", save_extents, load_extents},
      // After the fibers: slots that no fiber uses are free.
      {"stack slots", save_slots, load_slots},
      // After the fibers, because ready fibers are linked by their descriptors.
      {"ready fibers", save_ready, load_ready},
      {"timers", save_timers, load_timers},
      {"tickets", save_all_tickets, load_all_tickets},
      {"unanswered calls", save_unanswered, load_unanswered},
      {"threads", save_threads, load_threads},
      {"stop sources", save_stops, load_stops},
      {"records of objects", save_records, load_records},
      {"replicated objects", save_replicas, load_replicas},
      shared_memory,
  };
}

}  // namespace

void save_parts_of_rank(file_writer& to, const rank_to_save& rank,
                        const saved_part& shared_memory) {
  saved = &rank;
  save_parts(to, parts_with(shared_memory));
}

restored_root load_parts_of_rank(file_reader& from, const std::string& file,
                                 const saved_part& shared_memory) {
  load_parts(from, file, parts_with(shared_memory));
  return std::move(loaded_root);
}

}  // namespace sojourn::detail
