// SPDX-License-Identifier: Apache-2.0
// Sending results to their tickets, and receiving results of other ranks.
#pragma once

#include <cstdint>

#include "fiber/ticket_table.hpp"
#include "message/runtime_message.hpp"

namespace sojourn::detail {

/// Registers the handler of results. Before any message arrives.
void attach_results();

/// The flags of a message with a result of this kind.
inline std::uint16_t flags_of(outcome how) {
  if (how == outcome::exception) return flag_exception;
  return how == outcome::kept ? flag_kept : std::uint16_t{0};
}

/// A rank has ended: whatever waits here for an answer of it, or for a thread there, fails with
/// rank_lost.
void fail_answers_of(int rank);

}  // namespace sojourn::detail
