// SPDX-License-Identifier: Apache-2.0
#include "fiber/ticket_table.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "base/check.hpp"
#include "base/copy_short.hpp"
#include "base/saved_file.hpp"
#include "fiber/hooks.hpp"
#include "fiber/ready_queue.hpp"
#include "fiber/result_memory.hpp"
#include "memory/address_map.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

ticket_array tickets;

namespace {

constexpr unsigned index_bits = ticket_array::index_bits;
constexpr std::uint32_t index_mask = ticket_array::index_mask;

std::uint32_t used = 1;  // index 0 is no ticket
std::uint32_t free_list = 0;
std::size_t open_count = 0;

ticket_id id_of(std::uint32_t index, std::uint32_t generation) {
  return static_cast<std::uint64_t>(job.me) << 48 |
         static_cast<std::uint64_t>(generation & index_mask) << index_bits | index;
}

}  // namespace

void attach_tickets() {
  tickets.first =
      static_cast<ticket*>(runtime_memory((std::size_t{1} << index_bits) * sizeof(ticket)));
}

ticket_id ticket_open() { return open_ticket(-1)->id; }

ticket* open_ticket(int asked) {
  std::uint32_t index = free_list;
  if (index != 0) {
    free_list = tickets.first[index].next_free;
  } else {
    if (tickets.first == nullptr) refuse_outside_job("a result to wait for");
    if (used > index_mask) {
      die("more than %u calls and waits are open at once on this rank: wait for some futures "
          "before "
          "making more",
          index_mask);
    }
    index = used++;
    ::new (static_cast<void*>(&tickets.first[index])) ticket;
  }
  ticket& t = tickets.first[index];
  t.id = id_of(index, t.generation);
  t.taken_by = taker::asker;
  t.has = outcome::none;
  t.thread_at = -1;
  t.asked = asked;
  t.bytes = 0;
  t.waiter = nullptr;
  t.notify = nullptr;
  ++open_count;
  return &t;
}

namespace {

std::exception_ptr* thrown_at(ticket& t) {
  static_assert(sizeof(std::exception_ptr) <= ticket::inline_bytes);
  return std::launder(reinterpret_cast<std::exception_ptr*>(t.small));
}

[[gnu::noinline]] void give_back_result(ticket* t) {
  if (t->has == outcome::thrown) {
    std::destroy_at(thrown_at(*t));
  } else {
    results.give_back(t->large, t->bytes);
  }
  t->large = nullptr;
}

}  // namespace

void free_ticket(ticket* t) {
  if (t->large != nullptr) [[unlikely]]
    give_back_result(t);
  auto index = static_cast<std::uint32_t>(t->id) & index_mask;
  t->id = 0;
  ++t->generation;
  t->next_free = free_list;
  free_list = index;
  --open_count;
}

namespace {

inline void wake(piece* waiter) {
  waiter->waits = wait_cause::none;
  make_ready(waiter, resumed::anywhere);
}

/// Handles a result that has no reader. True when the ticket is free again; false when the ticket
/// has to keep the result after all.
[[gnu::noinline]] bool taken_without_reader(ticket* t, const void* bytes, std::size_t size,
                                            outcome how) {
  if (t->taken_by != taker::nobody) {
    landing there;
    std::memcpy(&there, t->small, sizeof there);
    if (how == outcome::value && size == there.bytes) {
      if (t->taken_by == taker::memory) {
        copy_short(there.into, bytes, size);
      } else if (bytes != there.into) {
        return true;  // it is being written by another answer
      }
      piece* const waiter = std::exchange(t->waiter, nullptr);
      free_ticket(t);
      if (waiter != nullptr) wake(waiter);
      if (there.landed != nullptr) there.landed(there.context);
      return true;
    }
    t->taken_by = taker::asker;
    if (there.failed != nullptr) there.failed(there.context, t->id);
    return false;
  }
  if (how == outcome::exception) {
    on_fiber.dropped.exception(bytes, size, reinterpret_cast<std::uint64_t>(t->notify_context));
  }
  if (how == outcome::kept) on_fiber.dropped.kept(bytes, size);
  free_ticket(t);
  return true;
}

inline void tell(ticket* t, std::size_t size, outcome how) {
  t->bytes = static_cast<std::uint32_t>(size);
  t->has = how;
  if (t->waiter != nullptr) {
    wake(std::exchange(t->waiter, nullptr));
  } else if (t->notify != nullptr) {
    // The note is removed: whoever was told is no reader any more, so another rank may ask for the
    // result.
    std::exchange(t->notify, nullptr)(t->notify_context);
  }
}

}  // namespace

void complete_ticket(ticket* t, const void* bytes, std::size_t size, outcome how) {
  if (t->has != outcome::none) return;
  if (t->taken_by != taker::asker && taken_without_reader(t, bytes, size, how)) [[unlikely]]
    return;
  if (size > ticket::inline_bytes) {
    t->large = results.take(size);
    std::memcpy(t->large, bytes, size);
  } else {
    copy_short(t->small, bytes, size);
  }
  tell(t, size, how);
}

void complete_ticket_with(ticket* t, void* memory, std::size_t size, outcome how) {
  if (t->has != outcome::none ||
      (t->taken_by != taker::asker && taken_without_reader(t, memory, size, how))) {
    return results.give_back(memory, size);
  }
  t->large = memory;
  tell(t, size, how);
}

void complete_ticket_thrown(ticket* t, const std::exception_ptr& exception) {
  if (t->has != outcome::none) return;
  if (t->taken_by != taker::asker && taken_without_reader(t, nullptr, 0, outcome::thrown)) return;
  t->large = ::new (static_cast<void*>(t->small)) std::exception_ptr(exception);
  tell(t, sizeof(std::exception_ptr), outcome::thrown);
}

const std::exception_ptr& thrown_of(const ticket& t) {
  SOJOURN_CHECK(t.has == outcome::thrown, "the ticket holds no exception of this rank");
  return *thrown_at(const_cast<ticket&>(t));
}

void land_result(ticket* t, const landing& there) {
  static_assert(sizeof there <= ticket::inline_bytes);
  std::memcpy(t->small, &there, sizeof there);
  t->taken_by = taker::memory;
}

std::byte* begin_to_fill(ticket* t, std::size_t bytes) {
  if (t->taken_by != taker::memory) return nullptr;
  landing there;
  std::memcpy(&there, t->small, sizeof there);
  if (!there.stays || there.bytes != bytes) return nullptr;
  t->taken_by = taker::filled_memory;
  return static_cast<std::byte*>(there.into);
}

void save_tickets(file_writer& to, ticket_id (*sent_on_to)(const ticket& t),
                  std::vector<std::byte> (*encoded)(const std::exception_ptr& exception)) {
  to.put(used);
  to.put(free_list);
  to.put(open_count);
  for (std::uint32_t i = 1; i < used; ++i) {
    const ticket& t = tickets.first[i];
    if (t.id != 0 && t.has == outcome::thrown) {
      // The exception object does not exist in another process. So the checkpoint gets the bytes
      // that another rank would get.
      const std::vector<std::byte> bytes = encoded(thrown_of(t));
      ticket as_bytes = t;
      as_bytes.has = outcome::exception;
      as_bytes.bytes = static_cast<std::uint32_t>(bytes.size());
      const bool fits = bytes.size() <= ticket::inline_bytes;
      if (fits) {
        as_bytes.large = nullptr;
        std::memcpy(as_bytes.small, bytes.data(), bytes.size());
      }
      to.put(as_bytes);
      if (!fits) to.bytes(bytes.data(), bytes.size());
      continue;
    }
    to.put(t);
    if (t.large != nullptr) to.bytes(t.large, t.bytes);
    if (t.is_awaited()) to.put(sent_on_to(t));
  }
}

void load_tickets(file_reader& from, void (*send_on)(ticket_id id, ticket_id to)) {
  from.get(used);
  from.get(free_list);
  from.get(open_count);
  for (std::uint32_t i = 1; i < used; ++i) {
    ticket& t = tickets.first[i];
    from.get(t);
    if (t.large != nullptr) {
      t.large = results.take(t.bytes);
      from.bytes(t.large, t.bytes);
    }
    if (!t.is_awaited()) continue;
    const auto sent_on_to = from.get<ticket_id>();
    if (sent_on_to == 0)
      continue;  // waited for among several: its note names only a ticket, and stays right
    t.notify = nullptr;
    send_on(t.id, sent_on_to);
  }
}

std::size_t tickets_open() { return open_count; }

void each_open_ticket(void (*visit)(const ticket& t, void* context), void* context) {
  for (std::uint32_t i = 1; i < used; ++i) {
    if (tickets.first[i].id != 0) visit(tickets.first[i], context);
  }
}

}  // namespace sojourn::detail
