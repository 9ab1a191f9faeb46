// SPDX-License-Identifier: Apache-2.0
#include "rpc/stop.hpp"

#include <cstring>
#include <memory_resource>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/saved_file.hpp"
#include "fiber/ticket_table.hpp"
#include "memory/runtime_resource.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/waiting/stop_token.hpp"

namespace sojourn::detail {

namespace {

/// A source that has not ended, as far as this rank knows: a source of this rank, or one of another
/// rank that this rank has asked about.
struct open_source {
  /// On the source's rank: which ranks have asked.
  std::pmr::vector<int> ranks{runtime_resource()};
  /// The tickets of this rank's fibers that wait for the source.
  std::pmr::vector<ticket_id> waiting{runtime_resource()};
};
using source_map = std::pmr::unordered_map<stop_id, open_source>;
/// Made at the first call, once the region is mapped.
source_map& open_sources() {
  static auto* map = new (runtime_memory(sizeof(source_map))) source_map(runtime_resource());
  return *map;
}

/// How 64 neighbouring sources ended, whose tokens may still be in use: all that is kept of a
/// source is a bit or two.
struct settled_sources {
  std::uint64_t requested = 0;
  std::uint64_t gone = 0;
};
using settled_map = std::pmr::unordered_map<stop_id, settled_sources>;
settled_map& settled() {
  static auto* map = new (runtime_memory(sizeof(settled_map))) settled_map(runtime_resource());
  return *map;
}
std::uint64_t bit_of(stop_id id) { return std::uint64_t{1} << id % 64; }

/// How a source ended; `none`: this rank does not know.
stop_state settled_state(stop_id id) {
  const auto found = settled().find(id / 64);
  if (found != settled().end()) {
    if (found->second.requested & bit_of(id)) return stop_state::requested;
    if (found->second.gone & bit_of(id)) return stop_state::gone;
  }
  // A rank knows all of its own sources, except those that are gone.
  return home_of(id) == job.me ? stop_state::gone : stop_state::none;
}

std::uint64_t last_number = 0;

void tell(int rank, stop_id id, stop_state state) {
  send_reply(rank, runtime_message::stop_told, 0, id, &state, sizeof state);
}

/// Forgets a source that has ended, except for its bit, and answers the fibers that wait for it.
void settle(source_map::iterator source, stop_state state) {
  const stop_id id = source->first;
  const auto waiting = std::move(source->second.waiting);
  open_sources().erase(source);
  if (state == stop_state::requested) {
    settled()[id / 64].requested |= bit_of(id);
  } else if (home_of(id) != job.me) {
    settled()[id / 64].gone |= bit_of(id);
  }
  for (const ticket_id waiter : waiting) send_result(waiter, &state, sizeof state);
}

/// Called on the source's rank, once: tells the ranks that have asked.
void settle_everywhere(stop_id id, stop_state state) {
  const auto found = open_sources().find(id);
  if (found == open_sources().end()) return;
  for (int rank : found->second.ranks) tell(rank, id, state);
  settle(found, state);
}

/// What this rank knows about the source. If it knows nothing, asks the source's rank.
stop_state look_up(stop_id id) {
  if (open_sources().contains(id)) return stop_state::open;
  const stop_state state = settled_state(id);
  if (state != stop_state::none) return state;
  open_sources().try_emplace(id);
  send_reply(home_of(id), runtime_message::stop_asked, 0, id, nullptr, 0);
  return stop_state::open;
}

void on_asked(arrival& a) {
  stop_id id = checked_ticket(a, a.ticket);
  int from = a.source;
  wire().consume(a);
  const auto found = open_sources().find(id);
  if (found != open_sources().end()) {
    found->second.ranks.push_back(from);
  } else {
    tell(from, id, settled_state(id));
  }
}

void on_told(arrival& a, const stop_state& state) {
  stop_id id = checked_ticket(a, a.ticket);
  if (state != stop_state::requested && state != stop_state::gone)
    refuse_arrival(a, "says something unknown about a stop source");
  wire().consume(a);
  settle(open_sources().try_emplace(id).first, state);
}

}  // namespace

void attach_stop() {
  on_message(runtime_message::stop_asked, on_asked);
  on_message<stop_state, on_told>(runtime_message::stop_told);
}

void save_stops(file_writer& to) {
  auto list = [&](const auto& values) {
    to.put(values.size());
    for (auto value : values) to.put(value);
  };
  to.put(last_number);
  to.put(open_sources().size());
  for (const auto& [id, source] : open_sources()) {
    to.put(id);
    list(source.ranks);
    list(source.waiting);
  }
  to.put(settled().size());
  for (const auto& [ids, known] : settled()) {
    to.put(ids);
    to.put(known);
  }
}

void load_stops(file_reader& from) {
  auto list = [&](auto& values) {
    values.resize(from.get<std::size_t>());
    for (auto& value : values) from.get(value);
  };
  from.get(last_number);
  for (auto left = from.get<std::size_t>(); left > 0; --left) {
    open_source& source = open_sources()[from.get<stop_id>()];
    list(source.ranks);
    list(source.waiting);
  }
  for (auto left = from.get<std::size_t>(); left > 0; --left) {
    const auto ids = from.get<stop_id>();
    from.get(settled()[ids]);
  }
}

stop_id stop_open() {
  stop_id id = static_cast<std::uint64_t>(job.me) << 48 | ++last_number;
  open_sources().try_emplace(id);
  return id;
}

void stop_request(stop_id id) { settle_everywhere(id, stop_state::requested); }

void stop_close(stop_id id) { settle_everywhere(id, stop_state::gone); }

stop_state stop_state_here(stop_id id) { return look_up(id); }

stop_state stop_wait(stop_id id) {
  stop_state state = look_up(id);
  if (state != stop_state::open) return state;
  ticket_id told = ticket_open();
  open_sources().find(id)->second.waiting.push_back(told);
  ticket_take(told, &state, sizeof state);
  return state;
}

}  // namespace sojourn::detail
