// SPDX-License-Identifier: Apache-2.0
// Threads as the Xthreads paper calls them (sojourn/xthreads.h).
#pragma once

namespace sojourn::detail {

/// Reads SOJOURN_RANKS_PER_NODE; throws sojourn::error when it is not a number of ranks.
void attach_xthreads();

}  // namespace sojourn::detail
