// SPDX-License-Identifier: Apache-2.0
// Several fibers of one rank working side by side.
#pragma once

#include <sojourn/sojourn.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

namespace apps {

/// One of the calls of in_fibers. The address is good where it runs, on the rank that it came from.
struct call_here {
  const std::function<void(int)>* body;
  int index;
};

}  // namespace apps

template <>
inline constexpr bool sojourn::travels<apps::call_here> = true;

namespace apps {

/// Calls body(0) … body(count-1) on this rank, each in a fiber of its own, and returns when all are
/// done; rethrows what one of them threw. Suspends.
inline void in_fibers(int count, const std::function<void(int)>& body) {
  std::vector<sojourn::future<void>> running;
  for (int i = 0; i < count; ++i) {
    running.push_back(sojourn::rpc(
        sojourn::rank_me(),
        [](call_here call) {
          const sojourn::stay here_only;  // Activations that the body opens may leave.
          (*call.body)(call.index);
        },
        call_here{&body, i}));
  }
  std::exception_ptr failure;
  for (auto& fiber : running) {
    try {
      fiber.get();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

/// How many of `total` pieces of work are this rank's, dealt out as cards are.
inline int share_of(int total) {
  const int ranks = sojourn::rank_count();
  return total / ranks + (sojourn::rank_me() < total % ranks ? 1 : 0);
}

/// Lets `cycles` pass, as the paper's "think time"; other fibers of this rank run meanwhile.
inline void think(std::uint64_t cycles) {
  if (cycles == 0) return;
  const std::uint64_t start = sojourn::ticks();
  while (sojourn::ticks() - start < cycles) sojourn::yield();
}

}  // namespace apps
