// SPDX-License-Identifier: Apache-2.0
#include "rpc/read_in_parts.hpp"

#include <cstdint>

#include "memory/address_map.hpp"
#include "rpc/tickets.hpp"

namespace sojourn::detail {

namespace {

/// True when results may be written there while the fiber waits. Not on a stack, where another
/// fiber's frames may lie meanwhile; not in a thread's heap, which may go to another rank; not in
/// shared memory, because only a fiber can wait for a page.
bool stays(const void* place) {
  const auto address = reinterpret_cast<std::uint64_t>(place);
  return !addresses.in_stacks(address) && !addresses.in_arenas(address) &&
         !addresses.in_shared(address);
}

}  // namespace

parts_in_flight::parts_in_flight(const void* to) : land_(stays(to)) {}

void parts_in_flight::add(ticket_id ticket, std::byte* to, std::size_t bytes) {
  parts_[(first_ + count_++) % most] = {ticket, to, bytes};
  if (land_) land_in_place(ticket, to, bytes);
}

parts_in_flight::part parts_in_flight::take_first() {
  const part oldest = parts_[first_];
  first_ = (first_ + 1) % most;
  --count_;
  return oldest;
}

void parts_in_flight::take_oldest() {
  const part oldest = take_first();
  if (land_) return wait_landed(oldest.ticket, oldest.bytes);
  ticket_take(oldest.ticket, oldest.to, oldest.bytes);
}

void parts_in_flight::settle() {
  while (!are_none()) {
    const part oldest = take_first();
    land_ ? settle_landing(oldest.ticket) : ticket_drop(oldest.ticket);
  }
}

}  // namespace sojourn::detail
