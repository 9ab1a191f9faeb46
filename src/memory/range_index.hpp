// SPDX-License-Identifier: Apache-2.0
// Ranges of addresses that do not overlap, each with its owner.
#pragma once

#include <cstdint>
#include <map>

namespace sojourn::detail {

template <class Owner>
class range_index {
 public:
  /// Requires: the range is not empty, and overlaps none in the index.
  void add(std::uint64_t address, std::uint64_t bytes, Owner* owner) {
    ranges_[address] = {bytes, owner};
  }
  /// Forgets the range that begins at `address`, if there is one.
  void remove(std::uint64_t address) { ranges_.erase(address); }

  /// The owner of a range that has a byte in common with the `bytes` from `address` on, or null.
  /// The two need not begin at the same address.
  Owner* find_overlapping(std::uint64_t address, std::uint64_t bytes) const {
    auto behind = ranges_.lower_bound(address);
    if (behind != ranges_.end() && behind->first - address < bytes) return behind->second.owner;
    if (behind == ranges_.begin()) return nullptr;
    --behind;
    return address - behind->first < behind->second.bytes ? behind->second.owner : nullptr;
  }
  bool empty() const { return ranges_.empty(); }

 private:
  struct range {
    std::uint64_t bytes;
    Owner* owner;
  };
  std::map<std::uint64_t, range> ranges_;
};

}  // namespace sojourn::detail
