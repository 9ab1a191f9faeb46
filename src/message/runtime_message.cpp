// SPDX-License-Identifier: Apache-2.0
#include "message/runtime_message.hpp"

#include <array>
#include <cstddef>

namespace sojourn::detail {

namespace {

using enum runtime_message;

struct count {
  std::uint64_t counters::* messages;
  std::uint64_t counters::* bytes;
};
constexpr count requests_count{&counters::requests_sent, &counters::request_bytes};
constexpr count replies_count{&counters::replies_sent, &counters::reply_bytes};
constexpr count migrations_count{&counters::migrations, &counters::migration_bytes};
constexpr count collective_count{&counters::collective_messages, &counters::collective_bytes};
constexpr count balance_count{&counters::balance_messages, &counters::balance_bytes};
constexpr count bulk_count{&counters::bulk_messages, nullptr};
constexpr count shared_count{&counters::shared_messages, &counters::shared_bytes};
constexpr count copies_count{&counters::copy_messages, &counters::copy_bytes};
constexpr count replicas_count{&counters::replica_messages, &counters::replica_bytes};
constexpr count upkeep_count{&counters::upkeep_messages, &counters::upkeep_bytes};
// Not counted here, because the sender of a piece counts the bytes of all its parts.
constexpr count with_its_piece{nullptr, nullptr};

constexpr message_kind row(runtime_message kind, const char* name, count counted) {
  return {kind, name, counted.messages, counted.bytes};
}
constexpr std::array kinds{
    row(result, "result", replies_count),
    row(piece, "piece of a stack", migrations_count),
    row(piece_to_read, "piece of a stack that is to be read", migrations_count),
    row(piece_part, "part of a piece of a stack", with_its_piece),
    row(extent_returns, "returned extent of a thread's heap", upkeep_count),
    row(forward_result, "request to forward a result", requests_count),
    row(drop_ticket, "notice that a ticket was dropped", upkeep_count),
    row(collective, "contribution to a collective operation", collective_count),
    row(scope_returns, "finish scope's weight", collective_count),
    row(scope_failed, "finish scope's exception", collective_count),
    row(scope_wants, "request for more of a finish scope's weight", collective_count),
    row(bulk_put, "put", bulk_count),
    row(bulk_get, "get", bulk_count),
    row(stop_asked, "question to a stop source", upkeep_count),
    row(stop_told, "stop source's answer", upkeep_count),
    row(check_copy, "notice of a copy", upkeep_count),
    row(thread_ask, "request that a thread move", upkeep_count),
    row(thread_moved, "notice that a thread has moved", upkeep_count),
    row(thread_query, "question about a thread", upkeep_count),
    row(thread_stale, "answer about a thread", upkeep_count),
    row(steal_ask, "request for threads", balance_count),
    row(steal_nothing, "notice that there are no threads to give", balance_count),
    row(load_told, "rank's load", balance_count),
    row(threads_handed, "batch of threads", balance_count),
    row(kept_read, "request for kept values", bulk_count),
    row(kept_ended, "notice that kept values are no longer needed", bulk_count),
    row(entry_told, "answer with the entry of a name", replies_count),
    row(forks_here, "notice about forks", upkeep_count),
    row(hunger, "notice of a rank that has nothing to do", upkeep_count),
    row(object_copies, "message about copies of an object", copies_count),
    row(object_place, "notice of an object's place", copies_count),
    row(way_cost, "notice of what a migration has cost", upkeep_count),
    row(replicas, "message about a replicated object", replicas_count),
    row(shared_memory, "message about shared memory", shared_count),
};

constexpr bool each_stands_at_its_number() {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (static_cast<std::size_t>(kinds[i].kind) != i) return false;
  }
  return kinds.size() == static_cast<std::size_t>(count_);
}
static_assert(each_stands_at_its_number());

}  // namespace

const message_kind& description_of(runtime_message kind) {
  return kinds[static_cast<std::size_t>(kind)];
}

}  // namespace sojourn::detail
