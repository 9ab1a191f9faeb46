// SPDX-License-Identifier: Apache-2.0
// What a C program of several processes has from malloc(). Its addresses are the same on all ranks,
// and each rank allocates from a part of its own: so what a process has allocated can be copied to
// a new process on another rank, at the same addresses, and a pointer to memory that only another
// process has leads nowhere, and is told from any other.
//
// When a process is created, everything so far is sealed: blocks that are freed afterwards are not
// dealt out again, and new ones come from pages of their own. Otherwise memory that a process
// allocates after it has created another would have addresses that mean something else there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sojourn::detail {

class private_heap {
 public:
  /// From now on allocate() works. Requires: the region is mapped.
  void attach(int rank, int ranks);

  bool is_attached() const { return part_low_ != 0; }
  /// Whether an address lies where some rank allocates.
  bool contains(std::uint64_t address) const { return address - low_ < bytes_; }
  /// Requires: contains(address).
  int rank_of(std::uint64_t address) const;

  /// Null, after a sentence, when there is no memory. `align`: a power of two, at least 16.
  void* allocate(std::size_t bytes, std::size_t align, bool zeroed);
  /// Requires: contains(block). What was not allocated ends the rank with a sentence. Blocks of
  /// other ranks, of which this one has a copy, are forgotten.
  void free(void* block);
  /// How many bytes can be used at a block.
  std::size_t bytes_of(const void* block) const;

  struct range {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
  };
  /// What is in use of the part of this rank, in whole pages; seals it.
  range seal();
  /// Sealed blocks are dealt out again: nobody has copies any more.
  void unseal();
  /// Nothing is allocated any more, and all that was is zero: a new process begins here. `kept`: of
  /// the part of this rank, what it will have a copy of, from a process that was here before. It is
  /// sealed.
  void reset(range kept);
  /// Makes addresses of another rank's part accessible, for a copy; they are zero.
  void open_copy(range r);
  /// Gives that copy up.
  void close_copy(range r);

 private:
  static constexpr std::size_t classes = 192;
  struct block_head;
  struct free_block {
    free_block* next;
  };

  static const block_head& head_of(const void* block);
  /// `asked`: what the program has asked for, for the sentence.
  void* take(std::size_t bytes, std::size_t asked, bool& is_zero);
  bool grow(std::uint64_t end);

  std::uint64_t low_ = 0;
  std::uint64_t bytes_ = 0;
  int rank_ = 0;
  std::uint64_t first_bytes_ = 0;  ///< Of the part of rank 0, which is the largest.
  std::uint64_t other_bytes_ = 0;
  std::uint64_t part_low_ = 0;
  std::uint64_t part_high_ = 0;
  std::uint64_t next_ = 0;        ///< Nothing was dealt out from here on.
  std::uint64_t open_ = 0;        ///< Not accessible from here on.
  std::uint64_t sealed_end_ = 0;  ///< Blocks below are sealed.
  std::array<free_block*, classes> free_{};
  std::array<free_block*, classes> sealed_free_{};
};

extern private_heap program_heap;

}  // namespace sojourn::detail
