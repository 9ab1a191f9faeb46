// SPDX-License-Identifier: Apache-2.0
// How the memory that the ranks of a host share for messages is laid out: a line for each rank of
// the job, by which it sleeps and is woken, a pair of rings for each two ranks, and each rank's
// blocks for long messages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/shm/ring.hpp"

namespace sojourn::detail::shm {

/// A rank's line: what it sleeps on, and which of its long-message blocks are in use.
struct alignas(line) wake_line {
  /// How a rank sleeps, as others see it. Whoever has something for a rank that is not awake calls
  /// shm_transport::wake(): so what goes to a far rank goes there without a further question.
  enum : std::uint32_t { awake, on_word, on_descriptors, is_far };
  std::atomic<std::uint32_t> asleep;
  std::atomic<std::uint32_t> needs_fences;  ///< The system has no membarrier for this rank.
  std::atomic<std::int32_t> pid;
  /// A word in the rank's private memory, and its value, a random number: whoever reads another
  /// value there reads another process, because `pid` is a number in a PID namespace of its own.
  std::atomic<std::uint64_t> word_at;
  std::atomic<std::uint64_t> word;
  /// An eventfd that does not block, of the same number in all processes of the host: where the
  /// rank sleeps on descriptors.
  std::atomic<std::int32_t> bell;
  char pad[line - 36];
  std::atomic<std::uint8_t> block_in_use[64];
};

/// Wakes the rank whose line it is, from any process of the job. True when it slept.
bool wake_sleeper(wake_line& sleeper);

/// How the transport's part of the job's segment is laid out, by arithmetic. Zeroed memory is a
/// valid start.
struct layout {
  /// Of a job of `all` ranks, of which `on_this_host` share the memory.
  layout(int all, int on_this_host);

  int ranks;
  int near;  ///< Of this host.
  std::size_t ring_capacity;
  std::size_t ring_stride;           ///< Bytes of one ring with its line.
  std::size_t block_bytes;           ///< Of one block for long messages.
  static constexpr int blocks = 64;  ///< A rank's own; runs of them hold one long message.

  /// In the transport's part of the segment: one for each rank of the job.
  static wake_line* wake_lines(std::byte* memory) { return reinterpret_cast<wake_line*>(memory); }
  // Inlined: where messages are read, a call would have registers saved for short ones, too, which
  // ask for neither (a ping: 26 instructions).
  std::size_t rings_offset() const {
    return lines_of(static_cast<std::size_t>(ranks) * sizeof(wake_line));
  }
  std::size_t blocks_offset() const {
    const auto n = static_cast<std::size_t>(near);
    return (rings_offset() + 2 * n * n * ring_stride + 4095) / 4096 * 4096;
  }
  std::size_t total_bytes() const;
};

}  // namespace sojourn::detail::shm
