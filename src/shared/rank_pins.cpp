// SPDX-License-Identifier: Apache-2.0
// Pins of this rank's shared memory, and scopes in which a wait for a page lets no other fiber run.
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/check.hpp"
#include "fiber/scheduler.hpp"
#include "memory/address_map.hpp"
#include "memory/stack_slots.hpp"
#include "message/loop.hpp"
#include "shared/mapping.hpp"
#include "shared/rank_memory.hpp"
#include "sojourn/errors.hpp"
#include "transport/neighbours.hpp"

namespace sojourn::detail::pages {

namespace {

/// The last page of a range that begins in shared memory.
page_number last_page_of(std::uint64_t address, std::size_t bytes) {
  const std::uint64_t left = addresses.shared + addresses.shared_bytes() - address;
  return page_of(address + std::min<std::uint64_t>(bytes, left) - 1);
}

}  // namespace

bool rank_memory::is_undivided(const piece* p) const {
  return std::any_of(undivided_.begin(), undivided_.end(), [p](std::uint64_t scope) {
    return scope >= slots.low(p->slot) && scope < p->hi;
  });
}

void rank_memory::pin(std::uint64_t address, std::size_t bytes, access how, std::uint64_t code) {
  if (bytes == 0 || !addresses.in_shared(address)) return;
  note_ran();
  const page_number first = page_of(address);
  const page_number last = last_page_of(address, bytes);
  for (page_number page = first; page <= last; ++page) {
    while (!pages_.pin(page, how)) {
      if (running_piece() == nullptr) {
        for (page_number taken = first; taken < page; ++taken) pages_.unpin(taken, how);
        throw error(
            format("memory at 0x%llx cannot be pinned outside of a fiber: its page is "
                   "elsewhere, and nothing can wait there",
                   static_cast<unsigned long long>(address)));
      }
      // Fetches the page as if an instruction at its address had faulted.
      const bool store = pages_.to_pin(page, how) == access::store;
      const std::uint64_t at = addresses.shared + std::uint64_t{page} * page_bytes;
      reach(at, store, ~(at + (store ? 1 : 0)), code);
    }
    note_ran();
  }
  // Loads or stores a byte of each page, because protection may be stricter than the protocol: the
  // access opens the page. Repeated if opening one page has closed others meanwhile.
  for (std::uint64_t closed = 0; closed != protection_->closed_early();) {
    closed = protection_->closed_early();
    for (page_number page = first; page <= last; ++page) {
      auto* byte = reinterpret_cast<char*>(program_page(page));
      if (how == access::store)
        __atomic_fetch_or(
            byte, 0,
            __ATOMIC_RELAXED);  // a store that changes no value, even if others store to this byte
      else
        (void)*static_cast<volatile char*>(byte);
    }
  }
}

void rank_memory::unpin(std::uint64_t address, std::size_t bytes, access how) {
  if (bytes == 0 || !addresses.in_shared(address)) return;
  refresh_pinned();
  for (page_number page = page_of(address); page <= last_page_of(address, bytes); ++page)
    pages_.unpin(page, how);
}

/// Brings pinned pages up to date after notices have come. No fiber may go on before that, because
/// an access to a pinned page does not fault. Other ranks answer while they handle messages, and so
/// does this rank while it waits.
void rank_memory::refresh_pinned() {
  if (refreshes_pinned_ || pages_.lacking_pinned() == nullptr) return;
  refreshes_pinned_ = true;
  const auto half_written = wire().set_aside();
  take_replies_until(
      [](void* of) {
        return static_cast<rank_memory*>(of)->pages_.lacking_pinned() == nullptr ||
               near_ranks().losses().load(std::memory_order_relaxed) != 0;
      },
      this);
  wire().take_up(half_written);
  refreshes_pinned_ = false;
  if (const page_number* page = pages_.lacking_pinned()) end_for_want_of(*page, access::load);
}

}  // namespace sojourn::detail::pages
