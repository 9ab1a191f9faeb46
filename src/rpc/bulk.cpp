// SPDX-License-Identifier: Apache-2.0
#include "rpc/bulk.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "base/check.hpp"
#include "fiber/ticket_table.hpp"
#include "memory/address_map.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "rpc/read_in_parts.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/owner.hpp"
#include "sojourn/objects.hpp"

namespace sojourn::detail {

namespace {

// After a part of this length of a long copy, other fibers and messages get their turn.
constexpr std::size_t copied_at_once = 8u << 20;
constexpr std::size_t sent_at_once = 128u << 10;
// A copy by the system does not wait for pages of shared memory, so copies from and to shared
// memory go through other memory of this rank, in parts of this length.
constexpr std::size_t between_at_once = 256u << 10;
bool is_in_shared_memory(const void* p) {
  return addresses.in_shared(reinterpret_cast<std::uint64_t>(p));
}
constexpr std::size_t in_flight_max = 4;
// Up to this many bytes, an answer that comes at once takes less time than a copy by the system.
constexpr std::size_t asked_for_max = 2048;
// If an owner has not answered at once, so many copies are made by the system before it is asked
// again.
constexpr std::uint32_t asked_again_after = 256;

struct bulk_request {
  std::uint64_t address;
  std::uint64_t bytes;
};

void refuse(ticket_id ticket, const bulk_request& r) {
  if (ticket == 0) {
    die("a store to %llu bytes at 0x%llx, which do not lie in the heap of rank %d",
        static_cast<unsigned long long>(r.bytes), static_cast<unsigned long long>(r.address),
        job.me);
  }
  send_exception(ticket, std::make_exception_ptr(
                             error(format("%llu bytes at 0x%llx do not lie in the heap of rank %d",
                                          static_cast<unsigned long long>(r.bytes),
                                          static_cast<unsigned long long>(r.address), job.me))));
}

void on_put(arrival& a, const bulk_request& r) {
  ticket_id ticket = checked_ticket(a, a.ticket);
  bool good = is_here(r.address, r.bytes) && a.bytes == sizeof r + r.bytes;
  if (good) std::memcpy(reinterpret_cast<void*>(r.address), a.payload + sizeof r, r.bytes);
  wire().consume(a);
  if (!good) return refuse(ticket, r);
  if (ticket != 0) send_result(ticket, nullptr, 0);
}

void on_get(arrival& a, const bulk_request& r) {
  ticket_id ticket = checked_ticket(a, a.ticket);
  wire().consume(a);
  if (!is_here(r.address, r.bytes) || r.bytes > sent_at_once) return refuse(ticket, r);
  send_result(ticket, reinterpret_cast<const void*>(r.address), r.bytes);
}

/// Calls copy(offset, bytes) part by part.
template <class Copy>
void in_turns(std::size_t bytes, std::size_t at_once, Copy copy) {
  for (std::size_t done = 0; done < bytes;) {
    std::size_t n = std::min(bytes - done, at_once);
    copy(done, n);
    done += n;
    if (done < bytes) yield();
  }
}

/// Sends a part of a copy, from `from`; if that is null, asks for it. Returns the ticket of the
/// answer.
ticket_id send_part(int owner, runtime_message kind, const bulk_request& part,
                    const std::byte* from) {
  std::byte* room = reserve_request(owner, sizeof part + (from != nullptr ? part.bytes : 0));
  std::memcpy(room, &part, sizeof part);
  if (from != nullptr) std::memcpy(room + sizeof part, from, part.bytes);
  const ticket_id ticket = open_answer(owner);
  if (owner != job.me) ++counts.bulk_messages;
  commit_message(owner, message_class::request, kind, 0, ticket);
  return ticket;
}

std::uint32_t* copies_before_asking;  // for each rank

/// Asks the owner for the bytes, and waits for about a round trip. Returns false when the answer
/// has not come by then, because the owner computes, has others to answer first or has no core, or
/// because this rank has something else to do. An answer that comes later is dropped. So a read
/// never depends on its owner. A write could not be taken back in this way, so the system always
/// makes it.
bool get_at_once(int owner, std::uint64_t from, void* to, std::size_t bytes) {
  if (bytes > asked_for_max) return false;
  std::uint32_t& before = copies_before_asking[owner];
  if (before != 0) {
    --before;
    return false;
  }
  const bulk_request r{from, bytes};
  std::byte* room = try_reserve_request(owner, sizeof r);
  if (room == nullptr) return false;
  std::memcpy(room, &r, sizeof r);
  const ticket_id id = open_answer(owner);
  ++counts.bulk_messages;
  commit_message(owner, message_class::request, runtime_message::bulk_get, 0, id);
  const ticket* answer = find_ticket(id);
  while (answer->has == outcome::none && take_reply_in_place(owner)) {
  }
  if (answer->has == outcome::none) {
    before = asked_again_after;
    ticket_drop(id);
    return false;
  }
  counts.bulk_copies += 3 * bytes;  // into the message, into the ticket, into place
  ticket_take(id, to, bytes);
  return true;
}

}  // namespace

void attach_bulk() {
  copies_before_asking = runtime_array<std::uint32_t>(static_cast<std::size_t>(job.count));
  on_message<bulk_request, on_put>(runtime_message::bulk_put);
  on_message<bulk_request, on_get>(runtime_message::bulk_get);
}

void bad_range(std::uint64_t address, std::size_t bytes) {
  if (!is_in_job()) refuse_outside_job("a copy");
  throw error(format("%zu bytes at 0x%llx do not lie in the heap of a rank of this job", bytes,
                     static_cast<unsigned long long>(address)));
}

void bulk_get(std::uint64_t from, void* to, std::size_t bytes) {
  if (bytes == 0) return;  // also if `from` lies in no heap
  int owner = owner_of_bytes(from, bytes);
  auto* into = static_cast<std::byte*>(to);
  counts.bulk_bytes += bytes;
  if (in_reach(from, bytes)) {
    counts.bulk_copies += bytes;
    return in_turns(bytes, copied_at_once, [&](std::size_t at, std::size_t n) {
      std::memcpy(into + at, reinterpret_cast<const std::byte*>(from) + at, n);
    });
  }
  if (is_lost(owner)) throw_rank_lost(owner, "a get");
  if (get_at_once(owner, from, to, bytes)) return;
  bool copied = true;
  if (is_in_shared_memory(to)) {
    std::vector<std::byte> between(std::min(bytes, between_at_once));
    in_turns(bytes, between.size(), [&](std::size_t at, std::size_t n) {
      if (copied) copied = wire().read_memory(owner, from + at, between.data(), n);
      if (copied) std::memcpy(into + at, between.data(), n);
    });
  } else {
    in_turns(bytes, copied_at_once, [&](std::size_t at, std::size_t n) {
      if (copied) copied = wire().read_memory(owner, from + at, into + at, n);
    });
  }
  if (copied) {
    counts.bulk_copies += bytes;
    return;
  }
  counts.bulk_copies += (1 + parts_in_flight(to).copies()) * bytes;  // the owner's into a message
  read_in_parts(into, bytes, sent_at_once, [&](std::size_t at, std::size_t n) {
    return send_part(owner, runtime_message::bulk_get, {from + at, n}, nullptr);
  });
}

void bulk_put(const void* from, std::uint64_t to, std::size_t bytes) {
  if (bytes == 0) return;  // also if `to` lies in no heap
  int owner = owner_of_bytes(to, bytes);
  const auto* source = static_cast<const std::byte*>(from);
  counts.bulk_bytes += bytes;
  if (in_reach(to, bytes)) {
    counts.bulk_copies += bytes;
    return in_turns(bytes, copied_at_once, [&](std::size_t at, std::size_t n) {
      std::memcpy(reinterpret_cast<std::byte*>(to) + at, source + at, n);
    });
  }
  if (is_lost(owner)) throw_rank_lost(owner, "a put");
  bool copied = true;
  if (is_in_shared_memory(from)) {
    std::vector<std::byte> between(std::min(bytes, between_at_once));
    in_turns(bytes, between.size(), [&](std::size_t at, std::size_t n) {
      std::memcpy(between.data(), source + at, n);
      if (copied) copied = wire().write_memory(owner, to + at, between.data(), n);
    });
  } else {
    in_turns(bytes, copied_at_once, [&](std::size_t at, std::size_t n) {
      if (copied) copied = wire().write_memory(owner, to + at, source + at, n);
    });
  }
  if (copied) {
    counts.bulk_copies += bytes;
    return;
  }
  counts.bulk_copies += 2 * bytes;  // into the message, into place
  std::deque<ticket_id> flying;
  const auto take_first = [&] {
    const ticket_id oldest = flying.front();
    flying.pop_front();
    ticket_take(oldest, nullptr, 0);
  };
  for (std::size_t next = 0; next < bytes;) {
    if (flying.size() == in_flight_max) take_first();
    const std::size_t n = std::min(bytes - next, sent_at_once);
    flying.push_back(send_part(owner, runtime_message::bulk_put, {to + next, n}, source + next));
    next += n;
  }
  while (!flying.empty()) take_first();
}

}  // namespace sojourn::detail
