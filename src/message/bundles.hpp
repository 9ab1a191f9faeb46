// SPDX-License-Identifier: Apache-2.0
// Making bundles of calls (detail/bundle.hpp), and running those that arrive.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sojourn/detail/bundle.hpp"

namespace sojourn::detail {

/// Throws sojourn::error when SOJOURN_AGGREGATE says nothing that is known.
void attach_bundles();

/// Sends the old bundles, or all when the rank is idle; returns how many. Scheduler's stack.
int send_due_bundles(bool idle);

/// True for the handler that runs bundles.
bool is_bundle(request_handler handler);
/// To be called when a call of a bundle has blocked: runs the rest of the bundle on another stack.
void rest_of_bundle(request& message);

}  // namespace sojourn::detail
