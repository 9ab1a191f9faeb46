// SPDX-License-Identifier: Apache-2.0
// Bundles of calls (detail/bundle.hpp), one to each rank, as the dispatcher sees them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sojourn/detail/bundle.hpp"

namespace sojourn::detail {

/// Bundles that hold calls.
extern std::size_t bundles_waiting;

/// Throws sojourn::error when SOJOURN_AGGREGATE says nothing that is known.
void attach_bundles();

/// Sends what is bundled for `to`, if anything is. False when there is no room. Any stack.
bool try_send_bundle(int to);
/// The same, and suspends until there is room.
void send_bundle(int to);
/// Bytes that it would need; 0 when there is none.
std::size_t bundle_bytes(int to);
/// Sends those that are old, or all when the rank is idle; returns how many. Scheduler's stack.
int send_due_bundles(bool idle);

/// The handler of bundles, as the dispatcher runs it.
bool is_bundle(request_handler handler);
/// After a call of a bundle has blocked: has what is left gone through by another.
void rest_of_bundle(request& message);

}  // namespace sojourn::detail
