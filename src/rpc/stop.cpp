// SPDX-License-Identifier: Apache-2.0
// Stop tokens: the rank of a source knows which ranks have asked, and tells each of them once. A
// ticket would not do: a computation that moves on whenever it asks would never meet its result.
#include "sojourn/stop_token.hpp"

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
#include "message/message_reader.hpp"
#include "rpc/rpc.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

namespace {

/// What a rank knows of a source, its own or another's.
struct known_source {
  stop_state state = stop_state::open;
  /// At home: who has asked.
  std::pmr::vector<int> ranks{runtime_resource()};
  /// Fibers of this rank.
  std::pmr::vector<ticket_id> waiting{runtime_resource()};
};
using source_map = std::pmr::unordered_map<stop_id, known_source>;
/// Made once the region is mapped.
source_map& sources_known() {
  static auto* map = new (runtime_memory(sizeof(source_map))) source_map(runtime_resource());
  return *map;
}
std::uint64_t last_number = 0;

void tell(int rank, stop_id id, stop_state state) {
  send_reply(rank, runtime_message::stop_told, 0, id, &state, sizeof state);
}

void settle(known_source& source, stop_state state) {
  source.state = state;
  for (ticket_id waiter :
       std::exchange(source.waiting, std::pmr::vector<ticket_id>(runtime_resource()))) {
    send_result(waiter, &state, sizeof state);
  }
}

/// At home, once.
void settle_everywhere(stop_id id, stop_state state) {
  auto found = sources_known().find(id);
  if (found == sources_known().end() || found->second.state != stop_state::open) return;
  for (int rank : found->second.ranks) tell(rank, id, state);
  settle(found->second, state);
}

known_source& source_of(stop_id id) {
  auto [found, is_new] = sources_known().try_emplace(id);
  if (!is_new) return found->second;
  if (home_of(id) == job.me) {
    found->second.state = stop_state::gone;
  } else {
    send_reply(home_of(id), runtime_message::stop_asked, 0, id, nullptr, 0);
  }
  return found->second;
}

void on_asked(arrival& a) {
  stop_id id = checked_ticket(a, a.ticket);
  int from = a.source;
  wire().consume(a);
  auto found = sources_known().find(id);
  stop_state state = found == sources_known().end() ? stop_state::gone : found->second.state;
  if (state == stop_state::open) {
    found->second.ranks.push_back(from);
  } else {
    tell(from, id, state);
  }
}

void on_told(arrival& a, const stop_state& state) {
  stop_id id = checked_ticket(a, a.ticket);
  if (state != stop_state::requested && state != stop_state::gone)
    refuse_arrival(a, "says nothing that is known of a stop source");
  wire().consume(a);
  settle(sources_known()[id], state);
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
  to.put(sources_known().size());
  for (const auto& [id, source] : sources_known()) {
    to.put(id);
    to.put(source.state);
    list(source.ranks);
    list(source.waiting);
  }
}

void load_stops(file_reader& from) {
  auto list = [&](auto& values) {
    values.resize(from.get<std::size_t>());
    for (auto& value : values) from.get(value);
  };
  from.get(last_number);
  for (auto left = from.get<std::size_t>(); left > 0; --left) {
    known_source& source = sources_known()[from.get<stop_id>()];
    from.get(source.state);
    list(source.ranks);
    list(source.waiting);
  }
}

stop_id stop_open() {
  stop_id id = static_cast<std::uint64_t>(job.me) << 48 | ++last_number;
  sources_known().try_emplace(id);
  return id;
}

void stop_request(stop_id id) { settle_everywhere(id, stop_state::requested); }

void stop_close(stop_id id) {
  settle_everywhere(id, stop_state::gone);
  // What was asked stays known here, for tokens that ask later.
  if (auto found = sources_known().find(id);
      found != sources_known().end() && found->second.state == stop_state::gone) {
    sources_known().erase(found);
  }
}

stop_state stop_state_here(stop_id id) { return source_of(id).state; }

stop_state stop_wait(stop_id id) {
  known_source& source = source_of(id);
  if (source.state != stop_state::open) return source.state;
  ticket_id told = ticket_open();
  source.waiting.push_back(told);
  stop_state state = stop_state::none;
  ticket_take(told, &state, sizeof state);
  return state;
}

}  // namespace sojourn::detail
