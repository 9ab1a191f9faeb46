// SPDX-License-Identifier: Apache-2.0
#include "migrate/thread_trailer.hpp"

#include <cstring>
#include <utility>

#include "base/saved_file.hpp"
#include "memory/runtime_resource.hpp"
#include "memory/thread_arena.hpp"
#include "message/message_reader.hpp"
#include "migrate/thread_table.hpp"

namespace sojourn::detail {

namespace {

thread_extra* free_extras = nullptr;

thread_extra* new_extra() {
  if (free_extras == nullptr) {
    constexpr std::size_t at_once = 64;
    auto* fresh = runtime_array<thread_extra>(at_once);
    for (std::size_t i = 0; i < at_once; ++i) {
      fresh[i].next_free = free_extras;
      free_extras = &fresh[i];
    }
  }
  thread_extra* extra = free_extras;
  free_extras = extra->next_free;
  *extra = {};
  return extra;
}

}  // namespace

thread_extra& extra_of(piece* p) {
  if (p->extra == nullptr) p->extra = new_extra();
  return *p->extra;
}

void free_extra(piece* p) {
  if (p->extra == nullptr) return;
  p->extra->next_free = free_extras;
  free_extras = std::exchange(p->extra, nullptr);
}

std::size_t trailer_bytes(const piece* p) {
  bool has_extra = p->extra != nullptr && p->is_thread_base();
  return sizeof(thread_trailer) + (has_extra ? sizeof(thread_extra) : 0);
}

void write_trailer(const piece* p, std::byte* room) {
  bool has_extra = p->extra != nullptr && p->is_thread_base();
  if (has_extra) {
    std::memcpy(room, p->extra, sizeof(thread_extra));
    room += sizeof(thread_extra);
  }
  thread_trailer t{p->thread, p->moves, has_extra};
  std::memcpy(room, &t, sizeof t);
}

void read_trailer(piece* p, const arrival& a, message_reader& from) {
  const auto t = from.take_last<thread_trailer>();
  p->thread = checked_ticket(a, t.thread);
  p->moves = t.moves;
  if (!t.has_extra) return;
  p->extra = new_extra();
  *p->extra = from.take_last<thread_extra>();
}

void save_thread(const piece* p, file_writer& to) {
  to.put(p->extra != nullptr);
  if (p->extra == nullptr) return;
  to.put(*p->extra);
  if (p->extra->heap != nullptr) p->extra->heap->save(to);
}

void load_thread(piece* p, file_reader& from) {
  if (p->is_thread_base()) threads_here.insert(p);
  if (!from.get<bool>()) return;
  p->extra = new_extra();
  from.get(*p->extra);
  if (p->extra->heap != nullptr) p->extra->heap = thread_arena::load(from);
}

}  // namespace sojourn::detail
