// SPDX-License-Identifier: Apache-2.0
// Values that a rank keeps until another rank has read them (detail/marshalled.hpp), and reading
// values that other ranks keep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "sojourn/detail/marshalled.hpp"

namespace sojourn::detail {

/// Registers the handlers of questions about kept values. Before any message arrives.
void attach_kept();
/// True when this rank keeps values that nobody has read.
bool values_are_kept();
/// Ends keeping the values on this rank, and returns them. Null when this rank did not keep them,
/// or when they are still being sent.
std::unique_ptr<kept_values> end_keeping_here(std::uint64_t holder);
/// Copies bytes that the rank `home` keeps. Suspends; throws malformed_message when it does not
/// keep them. `since_turn`: how many bytes were copied since other fibers had their turn.
void read_kept_block(int home, std::uint64_t holder, std::uint64_t address, void* to,
                     std::size_t bytes, std::size_t& since_turn);

}  // namespace sojourn::detail
