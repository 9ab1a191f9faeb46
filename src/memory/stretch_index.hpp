// SPDX-License-Identifier: Apache-2.0
// Stretches of addresses that do not overlap, each with its owner.
#pragma once

#include <cstdint>
#include <map>

namespace sojourn::detail {

template <class Owner>
class stretch_index {
 public:
  /// Requires: the stretch is not empty, and overlaps none in the index.
  void add(std::uint64_t address, std::uint64_t bytes, Owner* owner) {
    stretches_[address] = {bytes, owner};
  }
  /// Forgets the stretch that begins at `address`, if there is one.
  void remove(std::uint64_t address) { stretches_.erase(address); }

  /// The owner of a stretch that has a byte in common with the `bytes` from `address` on, or null.
  /// The two need not begin at the same address.
  Owner* find_overlapping(std::uint64_t address, std::uint64_t bytes) const {
    auto behind = stretches_.lower_bound(address);
    if (behind != stretches_.end() && behind->first - address < bytes) return behind->second.owner;
    if (behind == stretches_.begin()) return nullptr;
    --behind;
    return address - behind->first < behind->second.bytes ? behind->second.owner : nullptr;
  }
  bool empty() const { return stretches_.empty(); }

 private:
  struct stretch {
    std::uint64_t bytes;
    Owner* owner;
  };
  std::map<std::uint64_t, stretch> stretches_;
};

}  // namespace sojourn::detail
