// SPDX-License-Identifier: Apache-2.0
// For tests that run a fiber of a rank: the process is rank 0 of two, and the other one is silent.
// They check their claims in a child process (memory/region_test.hpp).
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <utility>

#include "fiber/scheduler.hpp"
#include "fiber/ticket_table.hpp"
#include "memory/region_test.hpp"
#include "memory/stack_slots.hpp"
#include "message/dispatcher.hpp"
#include "rpc/dropped_results.hpp"
#include "rpc/results.hpp"
#include "rpc/tickets.hpp"
#include "sojourn/detail/tasks.hpp"
#include "transport/sleepers.hpp"

namespace sojourn::detail {

/// Calls `then` when the fiber that now runs waits, or gives its turn.
template <class Then>
void later(Then then) {
  struct call final : task {
    explicit call(Then what) : task{run_it, nullptr}, then(std::move(what)) {}
    static void run_it(task* self) {
      auto* mine = static_cast<call*>(self);
      mine->then();
      delete mine;
    }
    Then then;
  };
  post_task(new call(std::move(then)));
}

/// Runs `body` in a fiber of the rank, until it returns.
template <class Body>
void in_a_fiber(Body body) {
  map_as(0, 4 * gib, 2);
  void* memory = mmap(nullptr, transport_bytes(2), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CLAIM(memory != MAP_FAILED);
  slots.attach(0, []() -> piece* { return nullptr; });
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  attach_scheduler(here - (1 << 20), here + (64 << 10));
  attach_tickets();
  attach_results();
  attach_forwarding();
  attach_dropped_results();
  attach_dispatcher(static_cast<std::byte*>(memory), 0, 2, 1);
  wire().begin();
  static bool has_returned = false;
  later([&body] {
    body();
    has_returned = true;
  });
  dispatch_until([] { return has_returned; });
}

}  // namespace sojourn::detail
