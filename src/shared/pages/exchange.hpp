// SPDX-License-Identifier: Apache-2.0
// What the parts of a rank's shared memory have in common: the rank's number, the intervals that it
// knows, the epoch, and sending.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "shared/pages/interval_log.hpp"
#include "shared/pages/page_layout.hpp"
#include "shared/pages/page_message.hpp"
#include "shared/pages/page_report.hpp"
#include "shared/pages/services.hpp"
#include "sojourn/shared/counters.hpp"

namespace sojourn::detail::pages {

struct exchange {
  exchange(services& h, page_layout of_pages, int my_rank, int rank_count, std::size_t pages)
      : host(h),
        layout(std::move(of_pages)),
        me(my_rank),
        ranks(rank_count),
        log(my_rank, rank_count, pages, h.memory()),
        barrier(log.known(), h.memory()),
        previous_barrier(log.known(), h.memory()),
        out(h.memory()) {}
  virtual ~exchange() = default;

  /// Begins a message in `out`.
  message_writer& begin(message_head head) {
    head.epoch = epoch;
    out.begin(head);
    return out;
  }
  /// Sends what is in `out`. A message to this rank is handled before this returns.
  void send(int to, std::span<const std::byte> back = {}) {
    if (to == me) return handle_own(back);
    count_message(back.size());
    host.send(to, out.bytes(), back);
  }
  /// Ends the open interval of this rank, if pages are open.
  virtual void close() = 0;
  /// Sends a rank notices of closed intervals that it lacks. They arrive before the next message to
  /// it.
  virtual void tell(int to) = 0;
  /// Takes in the notices of a message; closes the open interval first, if any notice is new.
  /// `like`: as it was given to interval_log::write().
  virtual void learn(page_message_reader& from, std::span<const interval> like) = 0;

  services& host;
  const page_layout layout;
  const int me;
  const int ranks;
  interval_log log;
  /// How many barriers and collections this rank has left.
  std::uint32_t epoch = 0;
  /// What all ranks knew at the last barrier, and at the one before.
  vector_clock barrier;
  vector_clock previous_barrier;
  message_writer out;
  sojourn::shared::counters own_counts;
  /// Where this rank counts: in own_counts, or in counters that the rank provides.
  sojourn::shared::counters* counts = &own_counts;
  /// Null unless a report is wanted. With a report every barrier collects, so that all diffs are
  /// compared.
  page_report* report = nullptr;
  std::size_t faults_under_way = 0;
  std::size_t locks_under_way = 0;

  /// Counts the requests that are under way when another request begins to wait for other ranks.
  void count_overlap() {
    counts->faults_overlapping += faults_under_way;
    counts->locks_overlapping += locks_under_way;
  }
  /// Counts the message in `out`, which goes to another rank, followed by `more_bytes` bytes.
  void count_message(std::size_t more_bytes) {
    const auto count = [&](std::uint64_t& messages, std::uint64_t& bytes) {
      ++messages;
      bytes += out.bytes().size() + more_bytes;
    };
    switch (out.group()) {
      case message_group::locks:
        return count(counts->lock_messages, counts->lock_message_bytes);
      case message_group::barriers:
        return count(counts->barrier_messages, counts->barrier_message_bytes);
      case message_group::news:
        return count(counts->news_messages, counts->news_message_bytes);
      case message_group::events:
        return count(counts->event_messages, counts->event_message_bytes);
      default:
        return count(counts->page_messages, counts->page_message_bytes);
    }
  }

 protected:
  virtual void handle_own(std::span<const std::byte> back) = 0;
};

}  // namespace sojourn::detail::pages
