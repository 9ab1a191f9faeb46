// SPDX-License-Identifier: Apache-2.0
// The threads whose bases are fibers of this rank.
#pragma once

#include <cstddef>

#include "fiber/piece.hpp"

namespace sojourn::detail {

/// The bases, by the thread's id. The table lies in the runtime's memory, so that its addresses,
/// when left on stacks, are not taken for pointers of the program.
class thread_table {
 public:
  piece* find(ticket_id thread) const {
    if (count_ == 0) return nullptr;
    for (piece* p = buckets_[bucket(thread)]; p != nullptr; p = p->next_thread) {
      if (p->thread == thread) return p;
    }
    return nullptr;
  }
  void insert(piece* p) {
    if (count_ == size_) grow();
    ++count_;
    add(p);
  }
  void erase(piece* p) {
    if (count_ == 0) return;
    for (piece** link = &buckets_[bucket(p->thread)]; *link != nullptr;
         link = &(*link)->next_thread) {
      if (*link != p) continue;
      *link = p->next_thread;
      --count_;
      return;
    }
  }

 private:
  std::size_t bucket(ticket_id thread) const { return (thread ^ thread >> 40) & (size_ - 1); }
  void add(piece* p) {
    piece*& first = buckets_[bucket(p->thread)];
    p->next_thread = first;
    first = p;
  }
  void grow();

  piece** buckets_ = nullptr;
  std::size_t size_ = 0;
  std::size_t count_ = 0;
};
extern thread_table threads_here;

}  // namespace sojourn::detail
