// SPDX-License-Identifier: Apache-2.0
// What load balance (balance.hpp) knows of the other ranks, which of them have nothing to do, and
// which thread may be handed to which.
#pragma once

#include <cstdint>

#include "migrate/balance_record.hpp"

namespace sojourn::detail {

/// How this rank stands with another one.
struct balance_peer {
  bool asked = false;         ///< This rank has asked the peer, and has no answer.
  bool knows = false;         ///< The peer remembers that this rank has nothing to do.
  bool is_hungry = false;     ///< The peer has asked, and got nothing so far.
  bool wants_answer = false;  ///< The peer has asked, and was not answered.
  std::uint32_t given = 0;    ///< Handovers to the peer …
  std::uint32_t got = 0;      ///< … and from it, counted as messages.
  int load = 0;               ///< The load that the peer told last.
};

struct balance_peers {
  balance_peer* of = nullptr;  ///< By rank.
  int asked = 0;               ///< Peers with `asked`.
  int not_asked = 0;           ///< Other ranks with neither `asked` nor `knows`.
  int hungry = 0;              ///< Peers with `is_hungry`.
  int unanswered = 0;          ///< Peers with `wants_answer`.
};
extern balance_peers balance_with;

void attach_handovers();

/// Notes whether `rank` is hungry: it has nothing to do.
void set_hungry(int rank, bool hungry);
/// Notes whether this rank waits for an answer of `from`, and whether `from` knows that this rank
/// has nothing to do.
void set_known(int from, bool asked, bool knows);
void answer_nothing(int to);
/// Notes that `from` handed something over. By doing so it forgot that this rank had asked.
void got_from(int from);

/// Note that this rank hands a thread over, and that it has got one.
void note_handover(balance_record& record);
void note_arrival(balance_record& record);
/// Whether the thread may be handed to `to` now.
bool may_go(const balance_record& record, int to);

/// Load balance has chosen a started thread to go to `to`; now the thread leaves, or cannot.
void handover_departs(balance_record& record, int to, bool leaves);
void handover_arrives(balance_record& record, int from);

}  // namespace sojourn::detail
