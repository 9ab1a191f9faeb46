// SPDX-License-Identifier: Apache-2.0
// Ranks that have ended: who learns of them, and what fails.
#pragma once

namespace sojourn::detail {

/// From now on the loop asks neighbours which ranks have ended. What waits for such a rank fails,
/// once for each rank (on_dispatch.fail_waits). Requires: attach_neighbours.
void attach_losses();
bool is_lost(int rank);
/// The rank that was the first to be known as lost, or no_rank.
int first_lost_rank();
/// Throws rank_lost, with a message that says that `to_do` needs the rank.
[[noreturn]] void throw_rank_lost(int rank, const char* to_do);

}  // namespace sojourn::detail
