// SPDX-License-Identifier: Apache-2.0
// Objects of this rank of which other ranks may have copies: where they lie, and which methods that
// change them are in progress.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "object/coherence/object_table.hpp"
#include "sojourn/detail/copies.hpp"

namespace sojourn::detail {

struct copied_object;
/// An object in a region, of which it has a byte or more.
struct region_of_copies {
  std::uint64_t number;
  copied_object* object;
  region_of_copies* next;  ///< With the same place.
};

/// An object that is here, or was made here and is away.
struct copied_object {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint16_t type = 0;  ///< object_shape::type
  unsigned changing = 0;   ///< Methods in progress that change it, suspended ones included.
  /// If it was made here and is away: how often a rank said that it has sent the object on, less
  /// how often one said that it has come.
  int on_its_way = 0;
  mutable unsigned too_long = 0;  ///< How often it need not be asked whether it fits a message.
  bool is_checked = false;        ///< Checked mode: a call of it has been checked.
  unsigned changes_in_vain = 0;   ///< Since a copy was given out last: changes that found none.
  // If it was made here and has come home for a call that had chosen that (call_places.hpp): which,
  // and changes since.
  std::uint32_t asked_at = 0;
  std::uint32_t uses = 0;

  // The regions in which it lies, in their order: all of them in one place or in the other.
  std::array<region_of_copies, 2> first_regions;
  std::unique_ptr<region_of_copies[]> more_regions;
  region_of_copies* regions() {
    return more_regions != nullptr ? more_regions.get() : first_regions.data();
  }
};

/// There is one at a time, because accesses look at its regions (regions_with_copies).
class copied_objects {
 public:
  copied_objects();
  ~copied_objects();
  copied_objects(const copied_objects&) = delete;
  copied_objects& operator=(const copied_objects&) = delete;

  bool empty() const { return all_.size() == 0; }
  copied_object* find(std::uint64_t address) { return all_.find(address); }
  const copied_object* find(std::uint64_t address) const { return all_.find(address); }
  template <class Visit>
  void each(Visit visit) const {
    all_.each([&](std::uint64_t, const copied_object& o) { visit(o); });
  }
  /// Those that share a byte with the range.
  std::vector<copied_object*> overlapping(std::uint64_t address, std::size_t bytes) const;
  bool overlaps(std::uint64_t address, std::size_t bytes) const;
  /// Requires: it overlaps none.
  copied_object& add(std::uint64_t address, object_shape shape);
  void remove(std::uint64_t address);

  /// A method changes something else than one of these objects: a whole that one is a part of, or a
  /// part.
  void begin_change_of(std::uint64_t address, std::size_t bytes);
  void end_change_of(std::uint64_t address, std::size_t bytes);
  /// Such a method is in progress, and shares a byte with the range.
  bool is_changed_with(std::uint64_t address, std::size_t bytes) const;

 private:
  struct range {
    std::uint64_t address;
    std::size_t bytes;
    friend bool operator==(const range&, const range&) = default;
  };
  template <class Visit>
  bool any_overlapping(std::uint64_t address, std::size_t bytes, Visit visit) const;
  void enter(region_of_copies* entered);
  void use_more_places();

  coherence::object_table<copied_object> all_;  // none overlaps another
  std::vector<range> changing_;
  std::size_t region_count_ = 0;
  std::size_t place_count_;
  std::unique_ptr<region_of_copies*[]> places_;
};

/// Whether a suspended fiber of this rank may be in a method of an object in this range: it is in a
/// method, and an address in the range, or little before it, lies in its frames: the object may be
/// a part of the one whose method it is. True also when there are too many frames to look through.
bool may_be_in_use(std::uint64_t address, std::size_t bytes);

}  // namespace sojourn::detail
