// SPDX-License-Identifier: Apache-2.0
#include "rpc/kept_values.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "base/check.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/ticket_table.hpp"
#include "memory/address_map.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "rpc/read_in_parts.hpp"
#include "sojourn/rank.hpp"

namespace sojourn::detail {

// ---- What is kept ---------------------------------------------------------------------------

kept_values::~kept_values() = default;

std::uint64_t kept_values::keep(const void* first, std::size_t bytes, bool borrowed) {
  // Shared memory is copied now: when the reader copies it, its pages may be elsewhere, or may have
  // changed.
  if (borrowed || addresses.in_shared(reinterpret_cast<std::uint64_t>(first))) {
    std::byte* copy = copy_room(bytes);
    std::memcpy(copy, first, bytes);
    counts.marshal_copies += bytes;
    return reinterpret_cast<std::uint64_t>(copy);
  }
  auto address = reinterpret_cast<std::uint64_t>(first);
  blocks_.push_back({address, bytes});
  total_ += bytes;
  return address;
}

std::byte* kept_values::copy_room(std::size_t bytes) {
  copies_.emplace_back(bytes);
  std::byte* room = copies_.back().get();
  blocks_.push_back({reinterpret_cast<std::uint64_t>(room), bytes});
  total_ += bytes;
  return room;
}

bool kept_values::has(std::uint64_t address, std::uint64_t bytes) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const block& b) {
    std::uint64_t offset = address - b.address;
    return offset < b.bytes && bytes <= b.bytes - offset;
  });
}

namespace {

// If the values of a rank's calls that it keeps for others would exceed this, the call waits. It
// does not wait if the rank keeps nothing else.
constexpr std::size_t kept_at_once_max = 256u << 20;

struct kept_entry {
  std::unique_ptr<kept_values> values;
  unsigned lent = 0;       ///< How many messages have not left that will be read from the values.
  bool has_ended = false;  ///< No rank reads the values any more.
};
struct keeper {
  std::unordered_map<std::uint64_t, kept_entry> kept;
  std::size_t ended = 0;  ///< How many entries in `kept` have ended.
  std::uint64_t last = 0;
  std::size_t bytes = 0;
  std::deque<ticket_id> waiting;
};
keeper& here() {
  // Never destroyed, because futures in static storage drop their results when the process ends.
  static keeper& k = *new keeper;
  return k;
}

/// Null when the values are not kept, or not any more.
kept_entry* find_kept(std::uint64_t holder) {
  auto found = here().kept.find(holder);
  return found == here().kept.end() || found->second.has_ended ? nullptr : &found->second;
}

/// Frees the entries that have ended, except those from whose values a message is being sent. (A
/// rank may have received such a message, and answered, before this rank's network says that the
/// message has left.)
void free_what_has_ended() {
  if (here().ended == 0) return;
  here().ended -= std::erase_if(
      here().kept, [](const auto& one) { return one.second.has_ended && one.second.lent == 0; });
}

}  // namespace

std::uint64_t keep_for_reader(std::unique_ptr<kept_values> values) {
  std::uint64_t holder = ++here().last;
  here().bytes += values->total();
  here().kept.emplace(holder, kept_entry{std::move(values)});
  return holder;
}

bool values_are_kept() { return here().kept.size() != here().ended; }

void wait_for_room_to_keep(std::size_t bytes) {
  while (here().bytes != 0 && here().bytes + bytes > kept_at_once_max) {
    ++counts.suspensions_for_room;
    ticket_id woken = ticket_open();
    here().waiting.push_back(woken);
    ticket_take(woken, nullptr, 0);
  }
}

std::unique_ptr<kept_values> end_keeping_here(std::uint64_t holder) {
  free_what_has_ended();
  kept_entry* const found = find_kept(holder);
  if (found == nullptr) return nullptr;
  here().bytes -= found->values->total();
  std::unique_ptr<kept_values> values;
  if (found->lent == 0) {
    values = std::move(found->values);
    here().kept.erase(holder);
  } else {
    found->has_ended = true;
    ++here().ended;
  }
  for (; !here().waiting.empty(); here().waiting.pop_front()) {
    if (ticket* t = find_ticket(here().waiting.front())) complete_ticket(t, nullptr, 0);
  }
  return values;
}

void end_keeping(int home, std::uint64_t holder) {
  if (home == job.me) {
    (void)end_keeping_here(holder);
    return;
  }
  send_reply(home, runtime_message::kept_ended, 0, holder, nullptr, 0);
}

void drop_kept_result(const void* bytes, std::size_t size) {
  marshalled_header header;
  kept_place place;
  if (size < sizeof header + sizeof place) return;
  std::memcpy(&header, bytes, sizeof header);
  std::memcpy(&place, static_cast<const std::byte*>(bytes) + sizeof header, sizeof place);
  if (header.home < 0 || header.home >= job.count) return;
  end_keeping(header.home, place.holder);
}

// ---- Reading ----------------------------------------------------------------------------------

namespace {

// After a part of this length of a long copy, other fibers and messages get their turn.
constexpr std::size_t copied_at_once = 8u << 20;
constexpr std::size_t asked_at_once = 128u << 10;

/// Called wherever messages leave, also in a signal handler, so it frees nothing:
/// free_what_has_ended() does.
void part_has_left(void* entry) { --static_cast<kept_entry*>(entry)->lent; }

void on_kept_ended(arrival& a) {
  std::uint64_t holder = a.ticket;
  wire().consume(a);
  end_keeping_here(holder);
}

struct read_request {
  std::uint64_t holder;
  std::uint64_t address;
  std::uint64_t bytes;
};

void refuse_read(ticket_id ticket, const read_request& r) {
  send_exception(
      ticket, std::make_exception_ptr(malformed_message(format(
                  "a message refers to %llu bytes at 0x%llx of rank %d, which keeps no such values",
                  static_cast<unsigned long long>(r.bytes),
                  static_cast<unsigned long long>(r.address), job.me))));
}

void on_kept_read(arrival& a, const read_request& r) {
  ticket_id ticket = checked_ticket(a, a.ticket);
  wire().consume(a);
  kept_entry* const kept = find_kept(r.holder);
  if (kept == nullptr || r.bytes > asked_at_once || !kept->values->has(r.address, r.bytes)) {
    return refuse_read(ticket, r);
  }
  ++kept->lent;
  if (lend_reply(home_of(ticket), runtime_message::result, ticket,
                 {reinterpret_cast<const std::byte*>(r.address), r.bytes, part_has_left, kept}))
    return;
  --kept->lent;
  send_result(ticket, reinterpret_cast<const void*>(r.address), r.bytes);
}

/// Used when the system does not let ranks copy each other's memory.
void read_by_messages(int home, std::uint64_t holder, std::uint64_t address, std::byte* to,
                      std::size_t bytes) {
  read_in_parts(to, bytes, asked_at_once, [&](std::size_t offset, std::size_t n) {
    const read_request r{holder, address + offset, n};
    std::byte* room = reserve_request(home, sizeof r);
    std::memcpy(room, &r, sizeof r);
    const ticket_id ticket = open_answer(home);
    ++counts.bulk_messages;
    commit_message(home, message_class::request, runtime_message::kept_read, 0, ticket);
    return ticket;
  });
}

}  // namespace

void attach_kept() {
  on_message<read_request, on_kept_read>(runtime_message::kept_read);
  on_message(runtime_message::kept_ended, on_kept_ended);
}

void read_kept_block(int home, std::uint64_t holder, std::uint64_t address, void* to,
                     std::size_t bytes, std::size_t& since_turn) {
  auto* into = static_cast<std::byte*>(to);
  if (home == job.me) {
    const kept_entry* kept = find_kept(holder);
    if (kept == nullptr || !kept->values->has(address, bytes)) {
      malformed("it refers to a block that its sender does not keep");
    }
  }
  for (std::size_t done = 0; done < bytes;) {
    if (since_turn >= copied_at_once) {
      // Outside of a fiber nothing can wait. (Only a forged message comes here in a handler that
      // runs in no fiber.)
      if (running_piece() != nullptr) yield();
      since_turn = 0;
    }
    std::size_t n = std::min(bytes - done, copied_at_once - since_turn);
    if (home == job.me) {
      std::memcpy(into + done, reinterpret_cast<const std::byte*>(address) + done, n);
    } else if (!wire().read_memory(home, address + done, into + done, n)) {
      return read_by_messages(home, holder, address + done, into + done, bytes - done);
    }
    done += n;
    since_turn += n;
  }
}

}  // namespace sojourn::detail
