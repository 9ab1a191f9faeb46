// SPDX-License-Identifier: Apache-2.0
// Results on their way to their tickets: those that come from other ranks, and those that this rank
// sends.
#pragma once

#include <cstdint>

#include "fiber/ticket_table.hpp"
#include "message/runtime_message.hpp"

namespace sojourn::detail {

/// Registers the handler of results. Before any message arrives.
void attach_results();

/// What the message of a result says of its kind.
inline std::uint16_t flags_of(outcome how) {
  if (how == outcome::exception) return flag_exception;
  return how == outcome::kept ? flag_kept : std::uint16_t{0};
}

/// A rank has ended: what waits here for an answer of it, or for a thread there, fails with
/// rank_lost.
void fail_answers_of(int rank);

}  // namespace sojourn::detail
