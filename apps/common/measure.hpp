// SPDX-License-Identifier: Apache-2.0
// What a run of requests cost, summed over the ranks.
#pragma once

#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "common/fibers.hpp"
#include "common/histogram.hpp"

namespace apps {

/// One measured run; the same on every rank.
struct figures {
  std::uint64_t operations = 0;
  double seconds = 0;
  std::uint64_t messages = 0;  ///< Between different ranks: requests, replies, migrations, and
                               ///< those about copies and shared memory.
  std::uint64_t bytes = 0;     ///< In those messages, headers included.
  std::uint64_t migrations = 0;
  std::uint64_t hits = 0;    ///< Accesses to remote objects that found a copy here,
  std::uint64_t misses = 0;  ///< and those that had to fetch one.
  double p50_us = 0;         ///< Of one operation as its requester sees it, without think time.
  double p99_us = 0;

  double per_second() const { return static_cast<double>(operations) / seconds; }
  double messages_each() const { return each(messages); }
  double bytes_each() const { return each(bytes); }
  double migrations_each() const { return each(migrations); }
  double hit_rate() const {
    return static_cast<double>(hits) /
           static_cast<double>(std::max<std::uint64_t>(hits + misses, 1));
  }

  /// Of two runs after each other. The percentiles are those of the slower one.
  friend figures operator+(const figures& a, const figures& b) {
    return {.operations = a.operations + b.operations,
            .seconds = a.seconds + b.seconds,
            .messages = a.messages + b.messages,
            .bytes = a.bytes + b.bytes,
            .migrations = a.migrations + b.migrations,
            .hits = a.hits + b.hits,
            .misses = a.misses + b.misses,
            .p50_us = std::max(a.p50_us, b.p50_us),
            .p99_us = std::max(a.p99_us, b.p99_us)};
  }

 private:
  double each(std::uint64_t total) const {
    return operations == 0 ? 0 : static_cast<double>(total) / static_cast<double>(operations);
  }
};

/// Runs body(requester, latencies) for `requesters` requesters spread over the ranks (requester r
/// on rank r mod rank_count()), each a fiber, and measures from the first to the last of them.
/// Collective: called by every rank. Suspends.
inline figures measure(int requesters, const std::function<void(int, histogram&)>& body) {
  histogram latencies;
  // Before the barrier: a rank may answer others that have left it before this rank goes on here.
  const sojourn::counters before = sojourn::counters_now();
  sojourn::barrier();
  const std::uint64_t start_ns = sojourn::now_ns();
  in_fibers(share_of(requesters),
            [&](int i) { body(sojourn::rank_me() + i * sojourn::rank_count(), latencies); });
  // Only when all ranks are done has this one answered its last request.
  sojourn::barrier();
  const double seconds = static_cast<double>(sojourn::now_ns() - start_ns) * 1e-9;
  const sojourn::counters spent = sojourn::counters_now() - before;

  latencies = sojourn::reduce(latencies, std::plus<>{});
  figures f;
  f.operations = latencies.count();
  f.seconds = sojourn::reduce(seconds, [](double a, double b) { return std::max(a, b); });
  const sojourn::counters all = sojourn::reduce(spent, std::plus<>{});
  f.messages = all.messages() + all.copy_messages + all.shared_messages;
  f.bytes = all.bytes() + all.copy_bytes + all.shared_bytes;
  f.migrations = all.migrations;
  f.hits = all.cache_hits;
  f.misses = all.cache_misses;
  f.p50_us = latencies.percentile(0.50) * 1e-3;
  f.p99_us = latencies.percentile(0.99) * 1e-3;
  return f;
}

/// Times one operation and adds it to `latencies`; returns its result.
template <class Operation>
auto timed(histogram& latencies, Operation operation) {
  const std::uint64_t start_ns = sojourn::now_ns();
  auto result = operation();
  latencies.add(sojourn::now_ns() - start_ns);
  return result;
}

}  // namespace apps
