// SPDX-License-Identifier: Apache-2.0
#include "migrate/reading.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "base/check.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/stack_copy.hpp"
#include "fiber/ticket_table.hpp"
#include "memory/range_index.hpp"
#include "memory/thread_arena.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "migrate/hooks.hpp"
#include "migrate/thread_trailer.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/tasks.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

constexpr std::size_t part_bytes_max = 128u << 10;

/// Stands behind the piece_header in a message. The table of the heap and the tail follow.
struct reading_header {
  std::uint64_t bytes;  ///< Of all frames.
  std::uint64_t image;  ///< Where the sender has the youngest `image_bytes` of these bytes; the
  std::uint64_t image_bytes;  ///< others are in place.
  ticket_id done;  ///< Gets an empty answer when the receiver has read everything, or the address
                   ///< to which the sender is to send the parts.
  arena_descriptor heap;  ///< `arena` is 0 when the piece has no heap.
};

/// Bytes that are to be copied from an address of the sender to one of the receiver.
struct bytes_to_move {
  std::uint64_t from;
  std::uint64_t to;
  std::uint64_t bytes;
};

struct sent : task {
  departure d;
  reading_header what;
  std::vector<page_range> heap;
  std::vector<extent_use> extents;  // of the heap, as they were when the thread left
  bool keeps_slot_still = false;    // its frames are read in place (stack_slot::being_read)
  bool is_over = false;
};
/// The extents of heaps that other ranks read here. A message that a reader is done may come late:
/// by then the extent may have been given back to its home, and have come here again with another
/// thread.
range_index<sent> extents_sent;
/// A piece whose bytes come in parts.
struct receiving {
  piece* coming;
  int source;
  std::uint64_t left;
  std::vector<bytes_to_move> to;  ///< Where this rank wants the bytes.
  bool keeps_slot_still;          ///< The bytes go straight to their place in the slot
                                  ///< (stack_slot::being_read).

  bool has_room(std::uint64_t address, std::uint64_t bytes) const {
    return std::any_of(to.begin(), to.end(), [&](const bytes_to_move& s) {
      const std::uint64_t offset = address - s.to;
      return offset < s.bytes && bytes <= s.bytes - offset;
    });
  }
};
std::unordered_map<ticket_id, receiving> by_parts;

thread_arena* heap_of(const piece* p) {
  return p->is_thread_base() && p->extra != nullptr ? p->extra->heap : nullptr;
}

std::vector<bytes_to_move> all_bytes_of(const reading_header& what, std::uint64_t sp,
                                        std::uint64_t room, const page_range* heap) {
  std::vector<bytes_to_move> all;
  if (what.image_bytes > 0) all.push_back({what.image, room, what.image_bytes});
  if (what.image_bytes < what.bytes) {
    all.push_back({sp + what.image_bytes, room + what.image_bytes, what.bytes - what.image_bytes});
  }
  for (std::size_t i = 0; i < what.heap.ranges && what.heap.arena != 0; ++i) {
    const page_range& range = heap[what.heap.extents + i];
    all.push_back({range.address, range.address, range.bytes});
  }
  return all;
}

std::uint64_t total_of(const std::vector<bytes_to_move>& all) {
  std::uint64_t bytes = 0;
  for (const bytes_to_move& s : all) bytes += s.bytes;
  return bytes;
}

/// The receiver has all bytes: releases what was kept for it.
void forget(sent* s) {
  if (s->is_over) return;
  s->is_over = true;
  piece* p = s->d.leaving;
  if (heap_of(p) != nullptr) {
    for (const extent_use& e : s->extents) extents_sent.remove(e.address);
    thread_arena::leave(s->extents);
    p->extra->heap = nullptr;
  }
  if (s->keeps_slot_still) slot_was_read(p->slot);
  retire(p);
}

/// `extent` has come here again, given back or with its thread. So the receiver has read what this
/// rank sent in it, even if its message that says so has not arrived.
void forget_sent_in(const page_range& extent) {
  while (sent* s = extents_sent.find_overlapping(extent.address, extent.bytes)) forget(s);
}

struct part_header {
  ticket_id done;
  std::uint64_t to;
};

/// Sends the bytes in parts, because the receiver may not read them. Runs in a fiber, because it
/// waits for room.
void send_parts(task* self) {
  auto* s = static_cast<sent*>(self);
  piece* p = s->d.leaving;
  // A piece that is on its way must arrive, even while the program's fibers stand still for a
  // checkpoint.
  running_piece()->runs_frozen = true;
  std::uint64_t room = 0;
  ticket_take(s->what.done, &room, sizeof room);
  for (const bytes_to_move& all : all_bytes_of(s->what, p->sp, room, s->heap.data())) {
    for (std::uint64_t at = 0; at < all.bytes;) {
      std::size_t bytes = std::min<std::uint64_t>(all.bytes - at, part_bytes_max);
      std::byte* message = reserve_request(s->d.to, sizeof(part_header) + bytes);
      part_header header{s->what.done, all.to + at};
      std::memcpy(message, &header, sizeof header);
      copy_frames(message + sizeof header, reinterpret_cast<const void*>(all.from + at), bytes);
      commit_message(s->d.to, message_class::request, runtime_message::piece_part, 0, 0);
      counts.migration_copies += bytes;
      counts.migration_bytes += sizeof header + header_bytes;  // the bytes are counted already
      at += bytes;
    }
  }
  forget(s);
  delete s;
  running_piece()->runs_frozen = false;
}

void on_done(void* context) {
  auto* s = static_cast<sent*>(context);
  const ticket* t = find_ticket(s->what.done);
  if (t->bytes == 0) {
    ticket_drop(s->what.done);
    forget(s);
    delete s;
    return;
  }
  // The receiver could not read the bytes, and has said where it wants them.
  post_task(s);
}

std::size_t message_bytes(const sent& s) {
  return sizeof(piece_header) + sizeof(reading_header) + s.heap.size() * sizeof(page_range) +
         tail_bytes(s.d.leaving);
}

void send(std::byte* room, sent* s) {
  piece* p = s->d.leaving;
  std::size_t bytes = message_bytes(*s);
  piece_header header = header_of(p);
  std::memcpy(room, &header, sizeof header);
  room += sizeof header;
  std::memcpy(room, &s->what, sizeof s->what);
  room += sizeof s->what;
  if (!s->heap.empty()) std::memcpy(room, s->heap.data(), s->heap.size() * sizeof(page_range));
  room += s->heap.size() * sizeof(page_range);
  std::uint16_t flags = write_tail(s->d, room);
  commit_message(s->d.to, message_class::request, runtime_message::piece_to_read, flags, p->result);
  count_message(runtime_message::piece_to_read, bytes + s->what.bytes);
  ticket_on_ready(s->what.done, on_done, s);
}

void send_late(void* context) {
  auto* s = static_cast<sent*>(context);
  std::byte* room = reserve_in_turn(s->d.to, message_bytes(*s));
  if (room == nullptr) return when_room(s->d.to, message_bytes(*s), send_late, s, s->d.leaving);
  send(room, s);
}

/// What a piece_to_read message begins with.
struct head_to_read {
  piece_header piece;
  reading_header what;
};
static_assert(sizeof(head_to_read) == sizeof(piece_header) + sizeof(reading_header));

/// Returns false when this rank may not read the memory of `source`.
bool read_all(int source, const std::vector<bytes_to_move>& all) {
  try {
    return std::all_of(all.begin(), all.end(), [source](const bytes_to_move& s) {
      return wire().read_memory(source, s.from, reinterpret_cast<void*>(s.to), s.bytes);
    });
  } catch (const error& e) {
    die("the frames that rank %d sends are not where its message says: %s", source, e.what());
  }
}

void on_piece_to_read(arrival& a, const head_to_read& head) {
  const reading_header& what = head.what;
  message_reader rest(a, sizeof head);
  piece* p = new_piece();
  read_tail(p, a, rest);
  (void)checked_ticket(a, what.done);
  if (what.image_bytes > what.bytes)
    refuse_arrival(a, "has an image that is longer than the piece");
  const bool has_table = what.heap.arena != 0;
  const std::size_t entries = has_table ? what.heap.entries() : 0;
  if (rest.left() != entries * sizeof(page_range))
    refuse_arrival(a, "has a table of a thread's heap whose length is not the announced one");
  std::vector<page_range> heap(entries);
  if (!heap.empty()) std::memcpy(heap.data(), rest.next(), rest.left());
  describe_arrival(p, a, head.piece, what.bytes);
  const thread_arena* named = heap_of(p);
  if (reinterpret_cast<std::uint64_t>(named) != what.heap.arena)
    refuse_arrival(a, "brings a heap that is not the thread's");
  int source = a.source;
  wire().consume(a);

  auto room = reinterpret_cast<std::uint64_t>(room_for_arrival(p));
  if (what.heap.arena != 0) {
    for (std::size_t i = 0; i < heap.size() && i < what.heap.extents; ++i) forget_sent_in(heap[i]);
    thread_arena::arrive(what.heap, heap.data());
  }
  std::vector<bytes_to_move> all = all_bytes_of(what, p->sp, room, heap.data());
  if (read_all(source, all)) {
    counts.migration_copies += total_of(all);
    send_result(what.done, nullptr, 0);
    return filled(p, source);
  }
  if (p->is_thread_base()) on_migrate.base.announced(p, source);
  // Keeps the slot as it is, so that nothing else is placed where the parts will come.
  const bool keeps_slot_still = p->in_place_from < p->hi;
  if (keeps_slot_still) ++slots[p->slot].being_read;
  by_parts[what.done] = {p, source, total_of(all), all, keeps_slot_still};
  send_result(what.done, &room, sizeof room);
}

void on_piece_part(arrival& a, const part_header& header) {
  std::size_t bytes = a.bytes - sizeof header;
  auto coming = by_parts.find(header.done);
  if (coming == by_parts.end() || coming->second.source != a.source ||
      bytes > coming->second.left || !coming->second.has_room(header.to, bytes)) {
    refuse_arrival(a, "belongs to no piece that its sender sends, or lies outside of it");
  }
  copy_frames(reinterpret_cast<void*>(header.to), a.payload + sizeof header, bytes);
  counts.migration_copies += bytes;
  wire().consume(a);
  coming->second.left -= bytes;
  if (coming->second.left > 0) return;
  receiving r = coming->second;
  by_parts.erase(coming);
  if (r.keeps_slot_still) slot_was_read(r.coming->slot);
  filled(r.coming, r.source, true);
}

void on_extent_returns(arrival& a, const page_range& extent) {
  wire().consume(a);
  forget_sent_in(extent);
  extents.give_back(extent.address, extent.bytes);
}

}  // namespace

void fail_arrivals_from(int rank) {
  for (auto at = by_parts.begin(); at != by_parts.end();) {
    auto coming = at++;
    if (coming->second.source != rank) continue;
    const piece* p = coming->second.coming;
    const ticket_id result = p->result;
    if (coming->second.keeps_slot_still) slot_was_read(p->slot);
    by_parts.erase(coming);
    if (result == 0) continue;
    try {
      throw_rank_lost(rank, "a computation that was on its way from there");
    } catch (...) {
      send_exception(result, std::current_exception());
    }
  }
}

void attach_reading() {
  on_message<head_to_read, on_piece_to_read>(runtime_message::piece_to_read);
  on_message<part_header, on_piece_part>(runtime_message::piece_part);
  on_message<page_range, on_extent_returns>(runtime_message::extent_returns);
}

bool anything_is_read() { return !extents_sent.empty() || !by_parts.empty(); }

bool has_heap(const piece* p) { return heap_of(p) != nullptr; }

void let_read(const departure& d) {
  piece* p = d.leaving;
  auto* s = new sent{{send_parts, nullptr}, d, {}, {}, {}, false, false};
  std::uint64_t image_bytes = p->in_place_from - p->sp;
  s->what = {p->bytes(), reinterpret_cast<std::uint64_t>(p->image), image_bytes, ticket_open(), {}};
  if (thread_arena* heap = heap_of(p); heap != nullptr) {
    s->what.heap = heap->describe();
    s->heap.resize(s->what.heap.entries());
    heap->list(s->heap.data());
    s->extents = heap->extents_in_use();
    for (const extent_use& e : s->extents) extents_sent.add(e.address, e.bytes, s);
  }
  // Keeps the slot as it is, so that the bytes stay where the message says they are until the other
  // rank has read them.
  s->keeps_slot_still = image_bytes < p->bytes();
  if (s->keeps_slot_still) ++slots[p->slot].being_read;
  std::size_t bytes = message_bytes(*s);
  SOJOURN_CHECK(bytes <= wire().payload_max(),
                "the heap of a thread has too many parts to be sent (%zu)", s->heap.size());
  std::byte* room = try_reserve_request(d.to, bytes);
  if (room != nullptr) [[likely]]
    return send(room, s);
  when_room(d.to, bytes, send_late, s, p);
}

}  // namespace sojourn::detail
