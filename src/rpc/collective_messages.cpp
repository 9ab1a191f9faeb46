// SPDX-License-Identifier: Apache-2.0
#include "rpc/collective_messages.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/check.hpp"
#include "fiber/ticket_table.hpp"
#include "memory/address_map.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"

namespace sojourn {

namespace detail {

constinit collectives_in_progress in_progress;

namespace {

constinit team_record world_record(1);
constinit team_record* teams = &world_record;
// Kept messages for teams that this rank does not know yet.
std::map<std::uint64_t, std::vector<contribution>> kept_for_teams;

open_collective* find_open(const team_record& among, std::uint64_t number) {
  open_collective* o = among.first_open;
  while (o != nullptr && o->number != number) o = o->next_of_team;
  return o;
}

/// Adds a contribution to a list, or appends it to the parts of the same contribution that are
/// there.
void add(std::vector<contribution>& to, const arrival& a, byte_span bytes) {
  for (contribution& begun : to) {
    if (begun.whole() || begun.number != a.ticket || begun.rank != a.source) continue;
    begun.bytes.insert(begun.bytes.end(), bytes.begin(), bytes.end());
    begun.flags = a.flags;
    return;
  }
  to.push_back({a.ticket, a.source, a.flags, {bytes.begin(), bytes.end()}});
}

collective operation_of(const arrival& a) {
  return static_cast<collective>(a.flags & contribution::operation_mask);
}

/// Has the fiber or the task that runs the operation look again.
void look_again(open_collective& o) {
  if (o.runs != nullptr) {
    if (!std::exchange(o.runs->is_posted, true)) post_task(o.runs);
  } else if (o.ticket != 0) {
    complete_ticket(find_ticket(std::exchange(o.ticket, 0)), nullptr, 0);
  }
}

void arrive(team_record& among, const arrival& a, byte_span bytes) {
  open_collective* o = find_open(among, a.ticket);
  if (o == nullptr) {
    // A contribution to an operation that has failed and ended here is dropped.
    if (a.ticket > among.last_number) add(among.kept, a, bytes);
    return;
  }
  add(o->here, a, bytes);
  // Operations have the same numbers on all ranks, so any contribution tells whether the ranks
  // agree.
  if (a.source == o->missing || operation_of(a) != o->what) look_again(*o);
}

void on_collective(arrival& a) {
  if (const collective what = operation_of(a);
      what == collective::none || what > collective::end_of_program) [[unlikely]] {
    refuse_arrival(a, "names no collective operation");
  }
  message_reader from(a);
  const std::uint64_t id =
      (a.flags & contribution::flag_of_team) != 0 ? from.take<std::uint64_t>() : 0;
  team_record* among = id == 0 ? &world_record : find_team(id);
  if (id != 0 && among != nullptr && member_of_rank(*among, a.source) < 0) [[unlikely]] {
    refuse_arrival(a, "names a team that its sender is not a member of");
  }
  const byte_span bytes{from.next(), from.left()};
  if (among != nullptr) [[likely]] {
    arrive(*among, a, bytes);
  } else {
    add(kept_for_teams[id], a, bytes);
  }
  wire().consume(a);
}

}  // namespace

void attach_collectives() {
  world_record.me = job.me;
  world_record.count = job.count;
  // So that the world's team never ends. A restored fiber may destroy copies of it that were
  // counted in another process.
  world_record.holders = ~std::size_t{0} / 2;
  on_message(runtime_message::collective, on_collective);
}

const char* name_of(collective operation) {
  switch (operation) {
    case collective::barrier:
      return "barrier";
    case collective::reduce:
      return "reduce";
    case collective::broadcast:
      return "broadcast";
    case collective::gather:
      return "gather";
    case collective::all_gather:
      return "all_gather";
    case collective::all_to_all:
      return "all_to_all";
    case collective::inclusive_scan:
      return "inclusive_scan";
    case collective::exclusive_scan:
      return "exclusive_scan";
    case collective::split:
      return "split";
    case collective::end_of_program:
      return "the end of the program";
    case collective::none:
      break;
  }
  return "no collective operation";
}

std::string place_of(collective what) {
  if (what == collective::end_of_program) return "at the end of its program";
  return format("in %s()", name_of(what));
}

// ---- Teams -------------------------------------------------------------------------------------

constinit never_destroyed_team team_of_all(&world_record);

team_record* find_team(std::uint64_t id) {
  team_record* t = teams;
  while (t != nullptr && t->id != id) t = t->next;
  return t;
}

int lost_member(const team_record& t) {
  if (first_lost_rank() == no_rank) return no_rank;
  if (member_of_rank(t, first_lost_rank()) >= 0) return first_lost_rank();
  for (const int rank : t.ranks) {
    if (is_lost(rank)) return rank;
  }
  return no_rank;
}

void hold_team(team_view* record) { ++static_cast<team_record*>(record)->holders; }

void drop_team(team_view* record) {
  auto* t = static_cast<team_record*>(record);
  if (--t->holders != 0) return;
  team_record** link = &teams;
  while (*link != t) link = &(*link)->next;
  *link = t->next;
  delete t;
}

int rank_of_member(const team_view& record, int member) {
  return rank_of(static_cast<const team_record&>(record), member);
}

int member_of_rank(const team_view& record, int rank) {
  const auto& t = static_cast<const team_record&>(record);
  if (t.ranks.empty()) return rank < t.count ? rank : -1;
  const auto found = std::find(t.ranks.begin(), t.ranks.end(), rank);
  return found == t.ranks.end() ? -1 : static_cast<int>(found - t.ranks.begin());
}

void no_members() { throw error("a collective operation on a team without members"); }

namespace {

/// What a member tells the others when a team is split.
struct chosen {
  int colour;
  int key;
  int number;  ///< The member's number in the team that is split.
  int rank;
  std::uint64_t id;  ///< The number of the new team, if this is its first member.
};

team make_team(const std::vector<chosen>& members) {
  auto* t = new team_record(static_cast<int>(members.size()));
  t->id = members.front().id;
  for (const chosen& m : members) {
    if (m.rank == job.me) t->me = static_cast<int>(t->ranks.size());
    t->ranks.push_back(m.rank);
  }
  t->next = std::exchange(teams, t);
  if (auto came = kept_for_teams.extract(t->id)) t->kept = std::move(came.mapped());
  return team(t);
}

}  // namespace

// ---- Operations that are open ------------------------------------------------------------------

void make_entries() {
  constexpr std::size_t at_once = 16;
  auto* made = runtime_array<open_collective>(at_once);
  for (std::size_t i = 0; i < at_once; ++i) {
    made[i].next_made = std::exchange(in_progress.made, &made[i]);
    made[i].next_free = std::exchange(in_progress.unused, &made[i]);
  }
}

/// Moves the kept messages for operation `o` to it.
void take_kept(open_collective& o) {
  std::vector<contribution>& kept = o.among->kept;
  for (std::size_t i = 0; i < kept.size();) {
    if (kept[i].number != o.number) {
      ++i;
      continue;
    }
    o.here.push_back(std::move(kept[i]));
    if (i + 1 != kept.size()) kept[i] = std::move(kept.back());
    kept.pop_back();
  }
}

void all_are_closed() {
  complete_ticket(find_ticket(std::exchange(in_progress.all_closed, 0)), nullptr, 0);
}

void collectives_end_program() { in_progress.program_ends = true; }

bool wait_for_open_collectives() {
  if (in_progress.count == 0) return false;
  while (in_progress.count != 0) {
    const ticket_id mine = in_progress.all_closed = ticket_open();
    ticket_take(mine, nullptr, 0);
  }
  return true;
}

bool collectives_are_open() { return in_progress.count != 0; }

void fail_collective() {
  for (open_collective* o = in_progress.made; o != nullptr; o = o->next_made) {
    if (o->among != nullptr && lost_member(*o->among) != no_rank) look_again(*o);
  }
}

collective_wait collective_waiting(ticket_id ticket) {
  int most = 100'000;  // read at any moment: a list that is being changed may have no end
  for (const open_collective* o = in_progress.made; o != nullptr && --most > 0; o = o->next_made) {
    if (o->among == nullptr) continue;
    if (o->ticket == ticket || ticket == in_progress.all_closed) return {o->what, o->missing};
  }
  return {collective::none, -1};
}

namespace {

void send_part(const open_collective& o, int rank, std::uint16_t flags, byte_span part) {
  flags |= static_cast<std::uint16_t>(o.what);
  if (o.among->id == 0) {
    return send_reply(rank, runtime_message::collective, flags, o.number, part.data(), part.size());
  }
  static value_bytes with_id;
  with_id.resize(sizeof o.among->id + part.size());
  std::memcpy(with_id.data(), &o.among->id, sizeof o.among->id);
  if (!part.empty()) std::memcpy(with_id.data() + sizeof o.among->id, part.data(), part.size());
  send_reply(rank, runtime_message::collective, flags | contribution::flag_of_team, o.number,
             with_id.data(), with_id.size());
}

}  // namespace

void send_to_member(const open_collective& o, int member, byte_span bytes, bool failed) {
  const int rank = rank_of(*o.among, member);
  const std::uint16_t flags = failed ? contribution::flag_failed : 0;
  const std::size_t at_once = wire().payload_max() - sizeof o.among->id;
  while (bytes.size() > at_once) {
    send_part(o, rank, flags | contribution::flag_goes_on, bytes.first(at_once));
    bytes = bytes.subspan(at_once);
  }
  send_part(o, rank, flags, bytes);
}

void disagree(const open_collective& o, const contribution& c) {
  die("ranks disagree about a collective operation: rank %d is %s and rank %d is %s; all ranks "
      "must call the same operations in the same order",
      job.me, place_of(o.what).c_str(), c.rank, place_of(c.what()).c_str());
}

}  // namespace detail

// ---- What programs see of teams ----------------------------------------------------------------

rank_t team::operator[](rank_t member) const {
  if (member < 0 || member >= rank_count()) {
    throw error(detail::format("a team of %d has no member %d", rank_count(), member));
  }
  return detail::rank_of_member(*record_, member);
}

rank_t team::from_world(rank_t rank) const {
  return record_ == nullptr || rank < 0 ? -1 : detail::member_of_rank(*record_, rank);
}

team team::split(int colour, int key) const {
  using namespace detail;
  // An id that is unique in the job: the rank that proposes it, and how many ids that rank has
  // proposed.
  static std::uint64_t proposed = 0;
  constexpr unsigned bits_of_count = 48;
  const std::uint64_t id = (static_cast<std::uint64_t>(job.me) + 1) << bits_of_count | (++proposed);
  std::vector<chosen> all =
      do_with<gathered_values<chosen>>({collective::split, collective_shape::up_and_down}, *this,
                                       chosen{colour, key, rank_me(), job.me, id});
  if (colour < 0) return {};
  std::erase_if(all, [colour](const chosen& c) { return c.colour != colour; });
  std::sort(all.begin(), all.end(), [](const chosen& a, const chosen& b) {
    return a.key != b.key ? a.key < b.key : a.number < b.number;
  });
  return make_team(all);
}

}  // namespace sojourn
