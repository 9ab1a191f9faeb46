// SPDX-License-Identifier: Apache-2.0
// Bundles of calls (detail/bundle.hpp), one to each rank, as the dispatcher sees them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sojourn/detail/bundle.hpp"

namespace sojourn::detail {

/// How many bundles hold calls.
extern std::size_t bundles_waiting;

/// Throws sojourn::error when SOJOURN_AGGREGATE says nothing that is known.
void attach_bundles();

/// Sends what is bundled for `to`, if anything is. False when there is no room. Any stack.
bool try_send_bundle(int to);
/// The same, but suspends until there is room.
void send_bundle(int to);
/// Bytes that the bundle for `to` needs; 0 when there is none.
std::size_t bundle_bytes(int to);
/// Sends the old bundles, or all when the rank is idle; returns how many. Scheduler's stack.
int send_due_bundles(bool idle);

/// True for the handler that runs bundles.
bool is_bundle(request_handler handler);
/// After a call of a bundle has blocked: runs the rest of the bundle on another stack.
void rest_of_bundle(request& message);

}  // namespace sojourn::detail
