// SPDX-License-Identifier: Apache-2.0
// Teams as each rank knows them, the collective operations that it has begun, and their messages.
// Each team numbers its operations, on each rank alike: the number says to which operation a
// contribution belongs, so that any number of them may be under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fiber/scheduler.hpp"
#include "sojourn/detail/collective.hpp"
#include "sojourn/detail/tasks.hpp"

namespace sojourn::detail {

/// What a rank has sent for an operation. The parts of a long contribution are put together as they
/// come.
struct contribution {
  // Flags of the message. Their low bits name the operation.
  static constexpr std::uint16_t operation_mask = 0xff;
  static constexpr std::uint16_t flag_failed = 0x100;
  static constexpr std::uint16_t flag_of_team = 0x200;  ///< The payload begins with the team's id.
  static constexpr std::uint16_t flag_goes_on = 0x400;  ///< The next message has more bytes.

  collective what() const { return static_cast<collective>(flags & operation_mask); }
  /// True when the bytes are an exception.
  bool failed() const { return (flags & flag_failed) != 0; }
  bool whole() const { return (flags & flag_goes_on) == 0; }

  std::uint64_t number;
  int rank;
  std::uint16_t flags;
  value_bytes bytes;
};

struct open_collective;

struct team_record : team_view {
  constexpr explicit team_record(int members) { count = members; }

  std::uint64_t id = 0;    ///< The same on all members; 0: all ranks.
  std::vector<int> ranks;  ///< In the order of their numbers; empty for all ranks.
  std::uint64_t last_number = 0;
  open_collective* first_open = nullptr;  ///< The earliest operation that this rank takes part in.
  open_collective* last_open = nullptr;
  std::vector<contribution> kept;  ///< Kept messages: for operations that this rank has not begun.
  bool has_fiber = false;          ///< A fiber is in an operation.
  std::size_t holders = 1;         ///< How many copies of the team and open operations exist.
  team_record* next = nullptr;
};

inline team_record& record_of(const team& t) { return *static_cast<team_record*>(t.record()); }
inline int rank_of(const team_record& t, int member) {
  return t.ranks.empty() ? member : t.ranks[static_cast<std::size_t>(member)];
}
team_record* find_team(std::uint64_t id);
/// A lost rank among the members, or no_rank.
int lost_member(const team_record& t);

/// Runs an operation that no fiber waits in.
struct collective_task : task {
  bool is_posted = false;
};

/// An operation that this rank has begun. Reports of hangs read these at any moment, so their
/// memory is never given back.
struct open_collective {
  team_record* among = nullptr;  ///< Null: not open.
  std::uint64_t number = 0;
  collective what = collective::none;
  int missing = -1;  ///< The rank whose contribution is needed next.
  ticket_id ticket =
      0;  ///< Of the fiber that waits in the operation, or of the operation's result.
  collective_task* runs = nullptr;  ///< Not null: no fiber waits in it.
  std::vector<contribution> here;   ///< Contributions that have come and were not taken yet.
  open_collective* next_of_team = nullptr;
  open_collective* next_free = nullptr;
  open_collective* next_made = nullptr;  ///< Links all that were ever made.
};

/// The operations that are open on this rank.
struct collectives_in_progress {
  open_collective* unused = nullptr;
  open_collective* made = nullptr;
  std::size_t count = 0;
  ticket_id all_closed =
      0;  ///< The ticket of the fiber that waits until none is open; 0: no fiber waits.
  bool program_ends = false;  ///< The next operation of all ranks is the one that ends the program.
};
extern collectives_in_progress in_progress;

void make_entries();
void take_kept(open_collective& o);
void all_are_closed();

/// Begins the next operation of a team. Collective operations need a fiber, even in a job of one
/// rank, which waits for nothing.
inline open_collective& open_next(team_record& among, collective what) {
  if (running_piece() == nullptr) [[unlikely]]
    waits_outside_fiber();
  if (in_progress.unused == nullptr) [[unlikely]]
    make_entries();
  open_collective& o = *in_progress.unused;
  in_progress.unused = o.next_free;
  o.among = &among;
  o.number = ++among.last_number;
  o.what = what;
  o.missing = no_rank;
  o.runs = nullptr;
  o.next_of_team = nullptr;
  if (in_progress.program_ends && among.id == 0) [[unlikely]] {
    in_progress.program_ends = false;
    o.what = collective::end_of_program;
  }
  (among.first_open == nullptr ? among.first_open : among.last_open->next_of_team) = &o;
  among.last_open = &o;
  ++among.holders;
  ++in_progress.count;
  if (!among.kept.empty()) take_kept(o);
  return o;
}

inline void close_operation(open_collective& o) {
  team_record& among = *o.among;
  open_collective** link = &among.first_open;
  open_collective* before = nullptr;
  for (; *link != &o; link = &before->next_of_team) before = *link;
  *link = o.next_of_team;
  if (among.last_open == &o) among.last_open = before;
  o.among = nullptr;
  o.ticket = 0;
  o.here.clear();
  o.next_free = std::exchange(in_progress.unused, &o);
  if (among.holders == 1) [[unlikely]]
    drop_team(&among);
  else
    --among.holders;
  if (--in_progress.count == 0 && in_progress.all_closed != 0) [[unlikely]]
    all_are_closed();
}

/// Sends this rank's contribution to a member. Never suspends.
void send_to_member(const open_collective& o, int member, byte_span bytes, bool failed);
/// Ends the job, because the ranks are in different operations.
[[noreturn, gnu::cold]] void disagree(const open_collective& o, const contribution& c);
/// The contribution of a member if it is here. Otherwise returns null, and sets o.missing to that
/// member's rank. Ends the job if a contribution to another operation has come.
inline contribution* find_contribution(open_collective& o, int member) {
  const int rank = rank_of(*o.among, member);
  for (contribution& c : o.here) {
    if (c.what() != o.what) [[unlikely]]
      disagree(o, c);
    if (c.rank == rank && c.whole()) return &c;
  }
  o.missing = rank;
  return nullptr;
}
inline void remove_contribution(open_collective& o, contribution* c) {
  if (c != &o.here.back()) *c = std::move(o.here.back());
  o.here.pop_back();
}
std::string place_of(collective what);

// ---- For the floors above ----------------------------------------------------------------------

/// Registers the handler of contributions. Before any message arrives.
void attach_collectives();
const char* name_of(collective operation);
/// Makes the next collective operation of all ranks the one that agrees on the end of the program.
void collectives_end_program();
/// Suspends until this rank has done its part in all collective operations that it has begun.
/// Returns false when there was no such operation.
bool wait_for_open_collectives();
/// True when this rank has begun operations that have not ended.
bool collectives_are_open();
/// A rank has ended: the operations that it is a member of fail with rank_lost.
void fail_collective();

/// What the fiber that waits for `ticket` waits for in a collective operation; `none`: it is in no
/// collective operation. Can be called at any moment.
struct collective_wait {
  collective operation;
  int missing;  ///< The rank whose contribution, or answer, is not here.
};
collective_wait collective_waiting(ticket_id ticket);

}  // namespace sojourn::detail
