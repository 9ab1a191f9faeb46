// SPDX-License-Identifier: Apache-2.0
// How elements that have indices are dealt out over the members of a team: in blocks, or in turn.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace sojourn {

namespace containers {

/// How elements that have indices are dealt out: which member has the i-th, at which place of
/// its part; and the other way round.
///
/// In blocks: each member has a stretch of indices, of equal length but for the last ones.
struct blocks {
  blocks(std::size_t size, std::size_t of_members)
      : per_member(std::max<std::size_t>(1, (size + of_members - 1) / of_members)) {}
  std::size_t member_of(std::size_t i) const { return i / per_member; }
  std::size_t place_of(std::size_t i, std::size_t member) const { return i - member * per_member; }
  std::size_t index_of(std::size_t member, std::size_t place) const {
    return member * per_member + place;
  }
  std::size_t count_of(std::size_t member, std::size_t size) const {
    return std::min(size, (member + 1) * per_member) - std::min(size, member * per_member);
  }
  static constexpr bool is_in_order = true;  ///< What is behind is on no earlier member.
  static constexpr std::size_t step(std::size_t) { return 1; }
  std::size_t per_member;
};
/// In turn: the members have the indices 0, 1, 2, … in turn.
struct cyclic {
  cyclic(std::size_t, std::size_t of_members)
      : members(of_members), inverse(((std::uint64_t{1} << 63) - 1) / of_members + 1) {}
  std::size_t member_of(std::size_t i) const { return i - place_of(i, 0) * members; }
  std::size_t place_of(std::size_t i, std::size_t) const {
    if (i >> 32 != 0) [[unlikely]]
      return i / members;
    // i / members by a multiplication, which is several times as quick. The inverse is too large by
    // less than 1, which makes i * inverse / 2^63 too large by less than 2^32 / 2^63: less than
    // what is missing to the next whole number, which is at least 1 / members.
    __extension__ using unsigned_128 = unsigned __int128;
    return static_cast<std::size_t>(unsigned_128{i} * inverse >> 63);
  }
  std::size_t index_of(std::size_t member, std::size_t place) const {
    return place * members + member;
  }
  std::size_t count_of(std::size_t member, std::size_t size) const {
    return (size + members - 1 - member) / members;
  }
  static constexpr bool is_in_order = false;
  static constexpr std::size_t step(std::size_t members) { return members; }
  std::size_t members;
  std::uint64_t inverse;  ///< 2^63 / members, rounded up.
};

/// Some indices, each `step` behind the one before: for (std::size_t i : …).
class indices {
 public:
  class iterator {
   public:
    using value_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using reference = std::size_t;
    using pointer = const std::size_t*;
    using iterator_category = std::input_iterator_tag;

    constexpr iterator() = default;
    constexpr iterator(std::size_t at, std::size_t step) : at_(at), step_(step) {}
    constexpr std::size_t operator*() const { return at_; }
    constexpr iterator& operator++() {
      at_ += step_;
      return *this;
    }
    constexpr iterator operator++(int) {
      const iterator before = *this;
      ++*this;
      return before;
    }
    friend constexpr bool operator==(const iterator& a, const iterator& b) {
      return a.at_ == b.at_;
    }

   private:
    std::size_t at_ = 0;
    std::size_t step_ = 1;
  };

  constexpr indices(std::size_t first, std::size_t count, std::size_t step)
      : first_(first), count_(count), step_(step) {}
  constexpr iterator begin() const { return {first_, step_}; }
  constexpr iterator end() const { return {first_ + count_ * step_, step_}; }
  constexpr std::size_t size() const { return count_; }
  constexpr bool empty() const { return count_ == 0; }
  /// The n-th.
  constexpr std::size_t operator[](std::size_t n) const { return first_ + n * step_; }

 private:
  std::size_t first_;
  std::size_t count_;
  std::size_t step_;
};

}  // namespace containers

using containers::blocks;
using containers::cyclic;

}  // namespace sojourn
