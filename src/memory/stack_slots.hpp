// SPDX-License-Identifier: Apache-2.0
// Stack slots: equal parts of the stacks region. Each has a stack at its high end, whose lowest
// page is a guard page. If there are enough addresses, the rest of the slot is guarded, too, so
// that no likely frame steps over the guard. Such slots are staggered: the stack of each ends a
// page lower in its slot than that of the slot before. (Stacks that all ended a multiple of 2 MiB
// apart would share a few sets of the TLB, and the entries of their page tables a set of the
// cache.) A slot belongs to the rank in whose partition it lies. Other ranks open it, too, when
// frames of that stack visit them. The first slots of a partition together are the slot of the main
// fiber, which is larger.
//
// Kernels before 6.13 lack madvise(MADV_GUARD_INSTALL): there each guard page splits a mapping, and
// a process may have only vm.max_map_count mappings. A slot beyond that limit is *unguarded*: in
// place of the guard page lies a canary, which is checked when a fiber has left the stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/address_map.hpp"

namespace sojourn::detail {

struct piece;

/// What a rank knows of one slot of the job.
struct stack_slot {
  piece* in_place = nullptr;  ///< Pieces with bytes in the slot on this rank; a list.
  std::uint32_t users = 0;    ///< Fibers of this rank whose stack it is (several when shared).
  bool open = false;          ///< It is backed with memory on this rank.
  bool unguarded = false;     ///< It has a canary instead of a guard page.
  /// How many pieces in place here are being read by other ranks, or sent in parts. While there are
  /// any, nothing else may be placed in the slot.
  std::uint16_t being_read = 0;
  /// Checked mode: the pages from this one on are inaccessible, because they would hold frames of
  /// callers that are on another rank; 0: none are. Such a slot does not count as `open`, so that a
  /// piece that needs more of it opens it.
  std::uint32_t closed_from_page = 0;
};

/// Whether the system charges all memory that a process may write to, even if it is never touched
/// (vm.overcommit_memory=2).
bool overcommit_is_strict();

class stack_slots {
 public:
  /// The length of the guard page, the lowest part of a stack.
  static constexpr std::size_t guard_bytes = 4096;

  /// Requires: the region is mapped. `watch` makes the entry that stays first in the list of an
  /// unguarded slot. So a list that is empty, or begins with another entry, tells that the slot has
  /// a guard page.
  void attach(int rank, piece* (*watch)(), bool charges_addresses = overcommit_is_strict());

  /// Slot of an address in the stacks region; the main fiber's slots count as one.
  std::uint32_t index_of(std::uint64_t address) const {
    std::uint64_t i = (address - addresses.stacks) >> addresses.slot_shift;
    std::uint64_t within = i & (addresses.slots_per_rank() - 1);
    return static_cast<std::uint32_t>(within < main_slots_ ? i - within : i);
  }
  stack_slot& operator[](std::uint32_t index) { return table_[index]; }

  /// The lowest address of a slot, where its guard begins. end() is one past its highest address:
  /// the beginning of the next slot.
  std::uint64_t begin(std::uint32_t index) const {
    return addresses.stacks + (std::uint64_t{index} << addresses.slot_shift);
  }
  std::uint64_t end(std::uint32_t index) const {
    return begin(index + (is_main(index) ? main_slots_ : 1));
  }
  /// Lowest address of the stack in a slot (its guard page) and one past its highest.
  std::uint64_t low(std::uint32_t index) const {
    return high(index) - (is_main(index) ? addresses.main_stack_bytes : addresses.stack_bytes);
  }
  std::uint64_t high(std::uint32_t index) const {
    return end(index) - (index & addresses.stagger_mask) * guard_bytes;
  }
  bool is_main(std::uint32_t index) const {
    return (index & (addresses.slots_per_rank() - 1)) == 0;
  }

  /// Backs the slot with memory on this rank. Throws std::bad_alloc.
  void open(std::uint32_t index) {
    if (!table_[index].open) [[unlikely]]
      open_now(index);
  }

  /// Makes a slot of another rank inaccessible from `hi`, the start of a page, upwards. Cheap when
  /// the slot is closed from there already.
  void close_above(std::uint32_t index, std::uint64_t hi);
  /// True when the slot is closed exactly from `hi` upwards: frames that end there can be copied to
  /// it without opening more of it.
  bool is_closed_above(std::uint32_t index, std::uint64_t hi) const {
    return hi - low(index) == table_[index].closed_from_page * guard_bytes;
  }
  bool is_closed_at(std::uint64_t address) const {
    if (!addresses.in_stacks(address)) return false;
    std::uint32_t index = index_of(address);
    std::uint32_t page = table_[index].closed_from_page;
    return page != 0 && address - low(index) >= page * guard_bytes;
  }

  std::uint32_t main_slot() const { return first_; }
  /// A slot of this rank, the most recently freed first. Throws std::bad_alloc when there is none.
  std::uint32_t acquire();
  void release(std::uint32_t index);

  /// How many fibers keep stacks of their own. Further handlers that block share stacks, and their
  /// bytes become images. A partition has a few slots more, for the next handler and for the fiber
  /// that it may become.
  std::size_t fibers_max() const { return fibers_max_; }

  /// The end of the message on an overflow: how to get a larger stack.
  const char* how_to_enlarge(std::uint32_t index) const {
    return is_main(index) ? "run with a larger one: --stack-main SIZE (SOJOURN_MAIN_STACK_KIB)"
                          : "run with larger ones: --stack-fiber SIZE (SOJOURN_STACK_KIB)";
  }

  /// Ends the rank when the slot has a canary that is damaged: the stack overflowed.
  void check(std::uint32_t index) const {
    if (table_[index].unguarded && !canary_is_whole(index)) [[unlikely]]
      overflowed(index);
  }

  /// How many slots of this rank were ever handed out. A checkpoint keeps this number and the users
  /// of each slot, and nothing else about slots.
  std::uint32_t handed_out() const { return next_ - first_ - main_slots_; }
  /// In a fresh job: hands out as many slots as in the earlier one, without users. Throws
  /// std::bad_alloc.
  void restore(std::uint32_t handed_out);
  /// Counts a fiber that has its stack in the slot.
  void restore_user(std::uint32_t index) { ++table_[index].users; }
  /// To be called after restore(), when all users are counted: frees the slots without users.
  void free_unused();

  /// True when `address` is guarded: a stack overflowed.
  bool is_guard(std::uint64_t address) const {
    if (!addresses.in_stacks(address)) return false;
    const std::uint32_t index = index_of(address);
    return address < low(index) + guard_bytes || address >= high(index);
  }

 private:
  void open_now(std::uint32_t index);
  void guard(std::uint32_t index);
  bool guard(std::uint64_t low_address, std::uint64_t high_address);
  bool canary_is_whole(std::uint32_t index) const;
  [[noreturn]] void overflowed(std::uint32_t index) const;
  void trim();

  stack_slot* table_ = nullptr;
  std::vector<std::uint32_t> free_;
  std::uint32_t first_ = 0;  // first slot of this rank's partition
  std::uint32_t next_ = 0;   // first slot that was never handed out
  std::uint32_t main_slots_ = 0;
  std::size_t fibers_max_ = 0;
  std::size_t warm_slots_ = 0;
  std::size_t trimmed_in_vain_ = 0;  // slots that were trimmed and then used again
  std::size_t trimmed_ = 0;          // free_[0 … trimmed_) hold no memory
  bool guards_by_advice_ = true;
  /// The system charges all memory that can be written to, even if it is never touched. So slots
  /// are opened one by one, without their guards.
  bool charges_addresses_ = false;
  piece* (*watch_)() = nullptr;
};

extern stack_slots slots;

}  // namespace sojourn::detail
