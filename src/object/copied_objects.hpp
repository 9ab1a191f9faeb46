// SPDX-License-Identifier: Apache-2.0
// Objects of this rank of which other ranks may have copies: where they lie, and which methods that
// change them are in progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace sojourn::detail {

struct copied_object {
  std::uint64_t address;
  std::uint64_t bytes;
  unsigned changing = 0;         ///< Methods in progress that change it, suspended ones included.
  unsigned changes_in_vain = 0;  ///< Since a copy was given out last: changes that found none.
};

class copied_objects {
 public:
  bool empty() const { return all_.empty(); }
  copied_object* find(std::uint64_t address);
  /// Those that share a byte with the range.
  std::vector<copied_object*> overlapping(std::uint64_t address, std::size_t bytes);
  copied_object& add(std::uint64_t address, std::size_t bytes);
  void remove(std::uint64_t address);
  void clear() { all_.clear(); }

 private:
  std::map<std::uint64_t, copied_object> all_;  // none overlaps another
};

/// Whether a suspended fiber of this rank may be in a method of an object in this range: it is in a
/// method, and an address in the range lies in its frames. True also when there are too many frames
/// to look through.
bool may_be_in_use(std::uint64_t address, std::size_t bytes);

}  // namespace sojourn::detail
