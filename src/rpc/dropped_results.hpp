// SPDX-License-Identifier: Apache-2.0
// Futures that are dropped: nobody takes their results, which may still come.
#pragma once

#include <cstdint>
#include <exception>

namespace sojourn::detail {

/// Registers what is done about results that nobody takes. Before any message arrives.
void attach_dropped_results();

/// Warns, once for each function, that it has dropped, without looking, a future whose call had
/// failed. `dropped_at`: the address of the code that dropped it; 0: does not warn.
void name_dropped(const std::exception_ptr& exception, std::uint64_t dropped_at);

}  // namespace sojourn::detail
