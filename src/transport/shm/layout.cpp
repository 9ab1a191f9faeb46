// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/layout.hpp"

#include <unistd.h>

#include "base/clock.hpp"

namespace sojourn::detail::shm {

layout::layout(int all, int on_this_host) : ranks(all), near(on_this_host) {
  const auto n = static_cast<std::size_t>(near);
  // Two rings for each pair of ranks: all rings together stay within half a GiB of addresses. The
  // capacity is how far senders may be ahead of a rank before they wait: up to 16 ranks of a host,
  // 16,384 messages of a line each. To wait for room costs a fiber ten times what the message does.
  // Where ranks keep up, rings begin again and again, and little of them is used.
  ring_capacity = 1 << 20;
  while (ring_capacity > (16 << 10) && ring_capacity * 2 * n * n > (std::size_t{512} << 20)) {
    ring_capacity /= 2;
  }
  ring_stride = ring_capacity + sizeof(ring_memory);
  block_bytes = 256 << 10;
}

std::size_t layout::total_bytes() const {
  return blocks_offset() + static_cast<std::size_t>(near) * blocks * block_bytes;
}

bool wake_sleeper(wake_line& sleeper) {
  std::uint32_t how = sleeper.asleep.load();
  do {
    if (how == wake_line::awake || how == wake_line::is_far) return false;
  } while (!sleeper.asleep.compare_exchange_weak(how, wake_line::awake));
  switch (how) {
    case wake_line::on_descriptors: {
      const std::uint64_t once = 1;
      (void)!write(sleeper.bell.load(), &once, sizeof once);
      return true;
    }
    default:
      wake_sleeper_on(sleeper.asleep);
      return true;
  }
}

}  // namespace sojourn::detail::shm
