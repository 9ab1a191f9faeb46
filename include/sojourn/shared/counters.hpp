// SPDX-License-Identifier: Apache-2.0
// What a rank counts of its shared memory: the columns of the tables and the parts of the figures
// in Thitikamol and Keleher, Per-Node Multi-Threading and Remote Latency. Always on: faults, locks,
// barriers and messages are counted, plain loads and stores are not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sojourn::shared {

/// One rank's counts since the job began. Messages are those sent to other ranks; their bytes do
/// not include the header that every message has.
struct counters {
  std::uint64_t faults_local = 0;   ///< Faults that needed nothing from other ranks.
  std::uint64_t faults_remote = 0;  ///< Faults that asked other ranks (Remote Faults).
  std::uint64_t faults_joined = 0;  ///< Faults on a page that was asked for already (Contention
                                    ///< Page).
  std::uint64_t faults_store = 0;   ///< Of all three: by stores.
  std::uint64_t faults_overlapping = 0;  ///< Remote faults that were under way when another remote
                                         ///< fault or lock began, added up (Overlapping Faults).
  std::uint64_t locks_local = 0;         ///< Locks taken without a message.
  std::uint64_t locks_remote = 0;        ///< Requests for locks (Remote Locks).
  std::uint64_t locks_joined = 0;  ///< Waits for a lock that is asked for, or held here (Contention
                                   ///< Lock).
  std::uint64_t locks_overlapping = 0;  ///< Requests for locks that were under way when another
                                        ///< remote fault or lock began (Overlapping Locks).
  std::uint64_t barriers = 0;           ///< Barriers left.
  std::uint64_t page_messages = 0;      ///< Requests for pages and diffs, and answers.
  std::uint64_t page_message_bytes = 0;
  std::uint64_t lock_messages = 0;
  std::uint64_t lock_message_bytes = 0;
  std::uint64_t barrier_messages = 0;  ///< Of barriers and collections.
  std::uint64_t barrier_message_bytes = 0;
  std::uint64_t news_messages = 0;  ///< What goes before calls, answers and moves.
  std::uint64_t news_message_bytes = 0;
  std::uint64_t diffs_made = 0;     ///< Diff Create.
  std::uint64_t diffs_applied = 0;  ///< Diff Use.
  std::uint64_t diff_bytes_applied = 0;
  std::uint64_t twins = 0;          ///< Copies of pages made or renewed.
  std::uint64_t pages_fetched = 0;  ///< Whole pages that came.
  std::uint64_t notices = 0;        ///< Pages that intervals of other ranks listed.
  std::uint64_t intervals = 0;      ///< This rank's own.
  std::uint64_t collections = 0;
  std::uint64_t page_waits = 0;          ///< Fibers that were suspended for a page.
  std::uint64_t lock_waits = 0;          ///< For a lock.
  std::uint64_t barrier_waits = 0;       ///< At a barrier.
  std::uint64_t switches_useful = 0;     ///< Of these waits: another fiber was ready.
  std::uint64_t switches_same_page = 0;  ///< All other fibers that wait do so for the same page
                                         ///< (all block).
  std::uint64_t switches_tail = 0;       ///< All others had arrived at the barrier (tail effect).
  std::uint64_t switches_idle = 0;       ///< Any other state without a ready fiber (no work).
  std::uint64_t page_idle_ns = 0;        ///< Time in which no fiber was ready, until a page came.
  std::uint64_t lock_idle_ns = 0;        ///< Until a lock came.
  std::uint64_t barrier_idle_ns = 0;     ///< Until a barrier ended.
  std::uint64_t serving_ns =
      0;  ///< Time spent handling messages about shared memory (IO handling).
  std::uint64_t faulting_ns = 0;    ///< Time spent in faults before the wait, if there is one. The
                                    ///< kernel's part is not measured.
  std::uint64_t events_local = 0;   ///< Operations on atomics, flags and the like at their home.
  std::uint64_t events_remote = 0;  ///< Those that ask another rank.
  std::uint64_t event_messages = 0;
  std::uint64_t event_message_bytes = 0;
  std::uint64_t event_waits = 0;    ///< Fibers that were suspended for an answer or an event.
  std::uint64_t event_idle_ns = 0;  ///< Time in which no fiber was ready, until one came.

  static constexpr std::size_t count() { return sizeof(counters) / sizeof(std::uint64_t); }
  std::array<std::uint64_t, 44> values() const {
    static_assert(count() == 44);
    return __builtin_bit_cast(std::array<std::uint64_t, 44>, *this);
  }
};

/// This rank's counts now. Never suspends.
counters counters_now();

/// Names of the counters, in the order of counters::values().
std::span<const char* const> counter_names();

}  // namespace sojourn::shared
