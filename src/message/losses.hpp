// SPDX-License-Identifier: Apache-2.0
// Ranks that have ended: who learns of them, and what fails.
#pragma once

#include <atomic>
#include <cstdint>

namespace sojourn::detail {

/// How this floor learns which ranks have ended; what waits for them fails, once for each rank.
struct losses {
  const std::atomic<std::uint32_t>* count;  ///< How many.
  bool (*is_lost)(int rank);
  void (*fail_waits)(int rank);  ///< Of the floor above; called on the scheduler's stack.
};
void attach_losses(const losses& told);
bool is_lost(int rank);
/// The rank that was the first to be known as lost, or no_rank.
int first_lost_rank();
/// Throws rank_lost, which says that `to_do` needs the rank.
[[noreturn]] void throw_rank_lost(int rank, const char* to_do);

}  // namespace sojourn::detail
