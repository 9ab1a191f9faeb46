// SPDX-License-Identifier: Apache-2.0
// What the protocols of the shared region ask of the rank they run on. The runtime is one
// implementation; the tests have another, with many ranks in one process and messages that are
// delivered in any order the transport's contract allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

#include "shared/pages/page.hpp"

namespace sojourn::detail::pages {

struct event_answer;

/// A fiber that waits in a queue of the protocols, which never look inside it.
using waiter = void*;

class services {
 public:
  virtual ~services() = default;

  /// The page's bytes as the runtime sees them: always there, and always writable.
  virtual std::byte* bytes(page_number page) = 0;
  /// Changes what the program may do with pages that all allow `from` now.
  virtual void protect(page_range range, access from, access to) = 0;
  /// Sends a message: `front`, then `back`. Messages to a rank arrive in the order they were sent.
  /// Never suspends, and never delivers anything before it returns.
  virtual void send(int to, std::span<const std::byte> front,
                    std::span<const std::byte> back = {}) = 0;

  /// The fibers that wait for this page and need no more than `allowed` execute their instruction
  /// again.
  virtual void wake_page(page_number page, access allowed) = 0;
  /// This fiber has the lock that it asked for.
  virtual void wake_locker(waiter fiber) = 0;
  /// The fibers that wait at the barrier go on.
  virtual void wake_barrier() = 0;
  /// The question that this fiber has sent to an object's home is answered: see class events.
  virtual void answered(waiter fiber, const event_answer& a) = 0;

  /// The rank that keeps the object with this number. The same on all ranks.
  virtual int home_of(std::uint64_t object) = 0;
  /// How many pages, `page` and those behind it, a fault on `page` should bring, because the
  /// program goes through memory in order; at least 1, and at most lmw::settings::together_max.
  /// Called once for each such fault. The fault brings fewer pages if page_layout::alike() says so.
  virtual std::uint32_t fetched_together(page_number page) = 0;

  /// Memory that never comes from malloc: a doorbell may interrupt the program in the middle of
  /// malloc, and the code that answers it allocates memory.
  virtual std::pmr::memory_resource* memory() = 0;

  /// A message is impossible: ends the rank with a report that names its sender.
  [[noreturn]] virtual void refuse(int from, const char* why) = 0;
};

}  // namespace sojourn::detail::pages
