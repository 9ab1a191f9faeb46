// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/layout.hpp"
#include "transport/sleepers.hpp"

namespace sojourn::detail {

std::size_t transport_bytes(int ranks, int near) { return shm::layout(ranks, near).total_bytes(); }

namespace {

shm::wake_line& line_of(std::byte* memory, int rank) {
  return shm::layout::wake_lines(memory)[rank];
}

}  // namespace

bool sleepers::is_asleep(int rank) const { return line_of(memory_, rank).asleep.load() != 0; }

bool sleepers::wake(int rank) const { return shm::wake_sleeper(line_of(memory_, rank)); }

}  // namespace sojourn::detail
