// SPDX-License-Identifier: Apache-2.0
// Calls of this rank that wait for what other ranks do about an object. What is known of them does
// not lie in the frames of their fibers, which may not be in their places while they wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sojourn/detail/copies.hpp"
#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

struct waiting_call {
  ticket_id ticket = 0;        ///< It waits for this, if it has begun to wait.
  int told = -1;               ///< Not negative: a coherence::woken.
  copy_block* room = nullptr;  ///< For the copy, or the object, that it asks for.
  int rank = -1;               ///< Where the object was when the call was told.
  bool follows = false;        ///< No call: the object is to come because another has.
};

class waiting_calls {
 public:
  /// A number that no call had before.
  std::uint64_t open() {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(all_.size()));
      all_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    place& taken = all_[index];
    taken.call = {};
    taken.number = ((taken.number + index_mask + 1) & ~index_mask) | index;
    taken.is_open = true;
    return taken.number;
  }
  /// Null when the call has been closed.
  waiting_call* find(std::uint64_t number) {
    const std::uint64_t index = number & index_mask;
    if (index >= all_.size() || !all_[index].is_open || all_[index].number != number)
      return nullptr;
    return &all_[index].call;
  }
  /// Requires: it is open.
  waiting_call close(std::uint64_t number) {
    place& closed = all_[number & index_mask];
    closed.is_open = false;
    free_.push_back(static_cast<std::uint32_t>(number & index_mask));
    return closed.call;
  }

 private:
  static constexpr unsigned index_bits = 24;
  static constexpr std::uint64_t index_mask = (std::uint64_t{1} << index_bits) - 1;
  struct place {
    waiting_call call;
    std::uint64_t number = 0;  ///< Its lowest bits are its index.
    bool is_open = false;
  };
  std::vector<place> all_;
  std::vector<std::uint32_t> free_;
};

}  // namespace sojourn::detail
