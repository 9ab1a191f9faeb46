// SPDX-License-Identifier: Apache-2.0
// The memory of other ranks' processes: read and written without a message, by the system's calls
// for that, where the system lets this process do so.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/shm/layout.hpp"

namespace sojourn::detail::shm {

class process_memory {
 public:
  /// `lines` of a job of so many ranks. Writes to that of `rank`, which this process is, how others
  /// reach its memory. Throws sojourn::error when SOJOURN_READ_MEMORY is neither on nor off.
  process_memory(wake_line* lines, int rank, int ranks);
  /// Others keep the address of a word in it.
  process_memory(const process_memory&) = delete;
  process_memory& operator=(const process_memory&) = delete;

  /// The rank is on another host.
  void note_far(int rank) { peers_[rank] = process_is::another; }

  /// Copies from the memory of `rank`, or to it. False when it cannot be reached from here. Throws
  /// sojourn::error where it can, and not at these addresses.
  bool copy(int rank, std::uint64_t there, void* here, std::size_t bytes, bool write);

 private:
  /// Whether wake_line::pid names the rank's process here.
  enum class process_is : std::uint8_t { unknown, the_rank, another };
  bool reaches(int rank);

  wake_line* lines_;
  process_is* peers_;           ///< One for each rank.
  std::uint64_t own_word_ = 0;  ///< At wake_line::word_at of this rank.
  bool is_refused_ = false;
};

}  // namespace sojourn::detail::shm
