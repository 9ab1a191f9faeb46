// SPDX-License-Identifier: Apache-2.0
// Words for any rank, packed into messages by hand: what one-way calls in bundles are compared
// with.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/mpi/application.hpp"

namespace apps::mpi {

inline constexpr int tag_words = 1;
inline constexpr int tag_end = 2;  ///< A rank's last message to another.

/// Messages with words from anywhere, received into buffers that were posted beforehand. They are
/// matched in the order in which they were posted, so the oldest is the one to look at.
/// `Apply` is called with the first word of a message and the end of its words.
template <class Apply>
class inbox {
 public:
  /// For messages of `words` words; `ahead` of them are posted.
  inbox(Apply apply, std::size_t words, std::size_t ahead)
      : apply_(apply), words_(words), values_(words * ahead), posted_(ahead, MPI_REQUEST_NULL) {
    if (rank_count() == 1) return;
    for (std::size_t i = 0; i < ahead; ++i) post(i);
  }
  ~inbox() {
    for (MPI_Request& r : posted_) {
      if (r == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&r);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
  }
  inbox(const inbox&) = delete;
  inbox& operator=(const inbox&) = delete;

  /// Applies what has come. False when nothing had.
  bool look() {
    MPI_Status status;
    int here = 0;
    MPI_Test(&posted_[oldest_], &here, &status);
    if (here == 0) return false;
    int count = 0;
    MPI_Get_count(&status, MPI_UINT64_T, &count);
    const std::uint64_t* const first = &values_[oldest_ * words_];
    apply_(first, first + count);
    ended_ += status.MPI_TAG == tag_end;
    post(oldest_);
    if (++oldest_ == posted_.size()) oldest_ = 0;
    return true;
  }
  /// Until all others have sent their last message.
  void look_until_the_end() {
    while (ended_ != ranks_ - 1) look();
  }
  /// Of words of this rank's own.
  void apply(const std::uint64_t* first, const std::uint64_t* last) { apply_(first, last); }

 private:
  void post(std::size_t i) {
    MPI_Irecv(&values_[i * words_], static_cast<int>(words_), MPI_UINT64_T, MPI_ANY_SOURCE,
              MPI_ANY_TAG, MPI_COMM_WORLD, &posted_[i]);
  }

  Apply apply_;
  const int ranks_ = rank_count();
  const std::size_t words_;
  std::vector<std::uint64_t> values_;
  std::vector<MPI_Request> posted_;
  std::size_t oldest_ = 0;
  int ended_ = 0;
};

/// Two buffers for each rank: one is filled while the other is on its way. This rank's own words
/// are gathered, too: no branch goes to and fro at random, and they are applied many at a time,
/// which takes half the time where they miss the caches.
template <class Apply>
class outbox {
 public:
  outbox(inbox<Apply>& in, std::size_t words)
      : in_(in), words_(words), lanes_(static_cast<std::size_t>(rank_count())) {
    for (lane& l : lanes_) {
      for (auto& b : l.values) b.resize(words);
      l.next = l.values[0].data();
      l.end = l.next + words;
    }
  }

  void add(int to, std::uint64_t word) {
    lane& l = lanes_[static_cast<std::size_t>(to)];
    *l.next++ = word;
    if (l.next == l.end) send(to, l, tag_words);
  }
  /// Sends what is left, and returns when all words of all ranks have been applied.
  void end() {
    send(me_, lanes_[static_cast<std::size_t>(me_)], tag_words);
    for (int to = 0; to < static_cast<int>(lanes_.size()); ++to)
      if (to != me_) send(to, lanes_[static_cast<std::size_t>(to)], tag_end);
    in_.look_until_the_end();
    for (lane& l : lanes_) MPI_Waitall(2, l.sent.data(), MPI_STATUSES_IGNORE);
  }

 private:
  struct lane {
    std::uint64_t* next = nullptr;
    std::uint64_t* end = nullptr;
    std::array<std::vector<std::uint64_t>, 2> values;
    std::array<MPI_Request, 2> sent{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    std::size_t filling = 0;
  };

  void send(int to, lane& l, int tag) {
    std::uint64_t* const first = l.values[l.filling].data();
    if (to == me_) {
      in_.apply(first, l.next);
      l.next = first;
      return;
    }
    MPI_Isend(first, static_cast<int>(l.next - first), MPI_UINT64_T, to, tag, MPI_COMM_WORLD,
              &l.sent[l.filling]);
    l.filling ^= 1;
    // Whoever sends looks at what has come, or two that only send would wait for each other.
    while (in_.look()) {
    }
    for (int free = 0;;) {
      MPI_Test(&l.sent[l.filling], &free, MPI_STATUS_IGNORE);
      if (free != 0) break;
      in_.look();
    }
    l.next = l.values[l.filling].data();
    l.end = l.next + words_;
  }

  inbox<Apply>& in_;
  const int me_ = rank_me();
  const std::size_t words_;
  std::vector<lane> lanes_;
};

}  // namespace apps::mpi
