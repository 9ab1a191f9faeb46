// SPDX-License-Identifier: Apache-2.0
// What a rank counts while it runs. Counting costs an increment; the counts are exact.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sojourn {

/// One rank's counts since the job began. Messages and bytes are those sent to other ranks, with
/// headers, by kind; what a rank sends to itself shows in `handlers_run` only.
struct counters {
  std::uint64_t requests_sent = 0;  ///< Remote calls: rpc, rpc_ff, call, async, make, destroy.
  std::uint64_t request_bytes = 0;
  std::uint64_t replies_sent = 0;  ///< Answers to them, and results of migrated activations.
  std::uint64_t reply_bytes = 0;
  std::uint64_t migrations = 0;           ///< Times that frames left this rank.
  std::uint64_t migration_bytes = 0;      ///< Bytes those messages held, headers included.
  std::uint64_t migration_copies = 0;     ///< Bytes of stacks and heaps of threads copied for them.
  std::uint64_t collective_messages = 0;  ///< Barriers, broadcasts, reductions, gathers, finish.
  std::uint64_t collective_bytes = 0;
  std::uint64_t bulk_messages = 0;  ///< put and get between ranks that share no heap.
  std::uint64_t bulk_bytes = 0;     ///< Bytes that put and get moved, by whatever way.
  std::uint64_t bulk_copies = 0;    ///< Bytes the processor copied for them.
  std::uint64_t calls_local = 0;    ///< Accesses by global_ptr that ran here without a message.
  std::uint64_t calls_remote = 0;   ///< Accesses by global_ptr that sent a request.
  std::uint64_t migrations_refused = 0;  ///< via::migrate that had to be an rpc.
  std::uint64_t scan_warnings = 0;       ///< Shipped words that may point to what stays.
  std::uint64_t cuts = 0;                ///< Times that a stack was cut at a mark.
  std::uint64_t images_out = 0;          ///< Pieces copied out of their place.
  std::uint64_t images_in = 0;           ///< Pieces copied back.
  std::uint64_t fibers_made = 0;         ///< Handlers and tasks that blocked and kept their stack.
  std::uint64_t switches = 0;            ///< Resumed pieces.
  std::uint64_t handlers_run = 0;        ///< Requests handled.
  std::uint64_t suspensions_for_room = 0;  ///< Senders that waited for a receiver.
  std::uint64_t sleeps = 0;                ///< Times the rank had nothing to do and slept.
  std::uint64_t wakeups_sent = 0;          ///< Sleeping ranks this one woke.
  std::uint64_t exceptions_sent = 0;       ///< Results that were exceptions.
  std::uint64_t balance_messages = 0;      ///< Requests, news and threads of load balance.
  std::uint64_t balance_bytes = 0;
  std::uint64_t steal_requests = 0;       ///< Times this rank asked another for threads.
  std::uint64_t steals_empty = 0;         ///< Requests for threads that got none.
  std::uint64_t threads_handed_over = 0;  ///< Threads that load balance sent away.
  std::uint64_t handovers_damped = 0;     ///< Not handed over, as they would go to and fro.
  std::uint64_t marshalled_bytes = 0;     ///< Bytes of values that own memory, sent.
  std::uint64_t marshal_copies = 0;       ///< Bytes the processor copied for those.
  std::uint64_t messages_refused = 0;     ///< Malformed messages received.
  std::uint64_t name_cache_hits = 0;      ///< Calls by name that knew where the function is.
  std::uint64_t name_cache_misses = 0;    ///< Calls by name that carried it.
  std::uint64_t bundles_sent = 0;         ///< Messages that held several calls (aggregate.hpp).
  std::uint64_t calls_bundled = 0;        ///< Calls in such messages.
  std::uint64_t forks = 0;            ///< Children begun: fork, async on a local object, par_for.
  std::uint64_t forks_blocked = 0;    ///< Children that blocked in their place.
  std::uint64_t forks_on_heap = 0;    ///< Children that began in their own context.
  std::uint64_t steals = 0;           ///< Stretches of stack given to ranks without work.
  std::uint64_t steals_refused = 0;   ///< Stretches not given: they held addresses of this rank.
  std::uint64_t shared_messages = 0;  ///< About pages, mutexes and barriers of shared memory.
  std::uint64_t shared_bytes = 0;
  std::uint64_t cache_hits = 0;         ///< Accesses that ran on a copy which was here.
  std::uint64_t cache_misses = 0;       ///< Accesses via::cache for which a copy was not here.
  std::uint64_t copies_given = 0;       ///< Copies of objects of this rank.
  std::uint64_t copies_taken_back = 0;  ///< Copies given up because a method changes the object.
  std::uint64_t copies_evicted = 0;     ///< Copies that made room for others.
  std::uint64_t objects_moved = 0;      ///< Objects that have come to this rank.
  std::uint64_t moves_refused = 0;      ///< Objects that were asked to leave this rank, and stayed.
  std::uint64_t calls_relayed = 0;      ///< Calls that came here after their object had left.
  std::uint64_t copy_messages = 0;      ///< About copies and moves, but for the calls themselves.
  std::uint64_t copy_bytes = 0;
  std::uint64_t versions_published = 0;  ///< Of replicated objects of this rank, by updates.
  std::uint64_t versions_pushed = 0;     ///< Sent to subscribers because they were published.
  std::uint64_t replica_misses = 0;      ///< Reads that found no version here.
  std::uint64_t replica_messages = 0;    ///< About replicated objects, but for the updates.
  std::uint64_t replica_bytes = 0;
  std::uint64_t calls_not_bundled = 0;  ///< One-way calls sent alone though calls were bundled.
  std::uint64_t upkeep_messages = 0;    ///< What ranks tell each other for the runtime's own sake.
  std::uint64_t upkeep_bytes = 0;

  /// Messages a program's own calls and migrations sent to other ranks.
  std::uint64_t messages() const { return requests_sent + replies_sent + migrations; }
  std::uint64_t bytes() const { return request_bytes + reply_bytes + migration_bytes; }

  static constexpr std::size_t count() { return sizeof(counters) / sizeof(std::uint64_t); }
  std::array<std::uint64_t, 64> values() const {
    static_assert(count() == 64);
    using array = std::array<std::uint64_t, 64>;
    return __builtin_bit_cast(array, *this);
  }
  counters& operator-=(const counters& before);
  counters& operator+=(const counters& other);
  friend counters operator-(counters now, const counters& before) { return now -= before; }
  friend counters operator+(counters a, const counters& b) { return a += b; }
  friend bool operator==(const counters&, const counters&) = default;
};

/// This rank's counts now; the difference of two says what was counted in between. Never suspends.
counters counters_now();

/// Names of the counters, in the order of counters::values().
std::span<const char* const> counter_names();

}  // namespace sojourn
