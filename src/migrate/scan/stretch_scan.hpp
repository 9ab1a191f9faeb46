// SPDX-License-Identifier: Apache-2.0
// The search of frames before they are given to an idle rank. The program did not ask for that by
// `via::migrate`, so a frame leaves only when no word in it can be an address of something that
// stays. Words are read at every byte, because members of packed structures may lie anywhere. They
// count whatever the alignment of the address, because a `char*` has none. (The pointer scan of
// frames that the program asked to move, in scan.hpp, only warns.)
//
// When a word looks like an address outside the region, the kernel is asked whether anything is
// mapped there. A list of mappings from before would be wrong as soon as the program maps memory,
// and a mere comparison with a range would take numbers for addresses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "frames/unwind_tables.hpp"
#include "migrate/scan/word_that_stays.hpp"
#include "sojourn/detail/mark.hpp"

namespace sojourn::detail {

struct fork_link;

/// The frames that are to leave: [low, high) of one stack slot. They are the youngest frames, or
/// lie between two marks.
struct leaving_frames {
  std::uint64_t low, high;
  const mark*
      younger;  ///< The mark in these frames below which a child runs that stays, and that was
                ///< given arguments. Null: there is no child, or its mark is in the tables alone.
  std::uint64_t
      older;  ///< The address of the mark at which they end, which may be on another rank.
  std::uint64_t older_end;  ///< One past the older mark, its arguments and its result; equals
                            ///< `older` when the mark is in the tables alone.
  /// Values of these frames in registers, which younger frames have saved.
  std::array<std::uint64_t, preserved_registers> registers{};
  /// Where these frames have saved registers of their callers: words that do not leave.
  std::array<std::uint64_t*, preserved_registers> of_older{};
  /// The link of the fork whose child these frames are, if it has one. Its words about that fork
  /// are of no use on another rank.
  const fork_link* link = nullptr;
  bool thread_has_heap;  ///< They belong to a thread with a heap of its own (thread_heap()).
  bool to_another_host;  ///< They go to a host whose ranks do not share this rank's heap.
};

/// Finds the first word that keeps the frames here. Passes over the younger mark, which only the
/// runtime reads, and over the room for its result, where nothing has been written yet. Looks at
/// the mark's arguments.
word_that_stays find_word_that_stays(const leaving_frames& frames);

/// True when the kernel has something mapped in the page of `address`. A system call.
bool is_mapped(std::uint64_t address);

}  // namespace sojourn::detail
