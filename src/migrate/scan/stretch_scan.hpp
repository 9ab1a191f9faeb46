// SPDX-License-Identifier: Apache-2.0
// The look at frames before they are given to an idle rank. The program did not ask for that by
// `via::migrate`, so a frame leaves only when no word in it can be an address of what stays. Words
// are read at every byte, since members of packed structures may lie anywhere, and count whatever
// the alignment of the address, since a `char*` has none. The pointer scan of frames that the
// program asked to move (scan.hpp) only warns.
//
// When a word looks like an address outside the region, the kernel is asked whether anything is
// mapped there. A list kept from before would be wrong as soon as the program maps memory, and a
// comparison with a range would take numbers for addresses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "frames/unwind_tables.hpp"
#include "migrate/scan/word_that_stays.hpp"
#include "sojourn/detail/mark.hpp"

namespace sojourn::detail {

struct fork_link;

/// Frames of one stack slot, [low, high), that are to leave: the youngest, or those between two
/// marks.
struct leaving_frames {
  std::uint64_t low, high;
  const mark* younger;  ///< In these frames; the child below it stays, and was given arguments.
                        ///< Null: there is no child, or its mark is in the tables alone.
  std::uint64_t older;  ///< Address of the mark at which they end; the mark itself may be absent.
  std::uint64_t older_end;  ///< Past the older mark, its arguments and its result; `older` when
                            ///< the mark is in the tables alone.
  /// Values of theirs in registers that younger frames have saved.
  std::array<std::uint64_t, preserved_registers> registers{};
  /// Where they have saved registers of the frames that called them: words that do not leave.
  std::array<std::uint64_t*, preserved_registers> of_older{};
  /// The link of the fork that they are the child of, if it has one. What it says of that fork is
  /// of no use elsewhere.
  const fork_link* link = nullptr;
  bool thread_has_heap;  ///< They belong to a thread with a heap of its own (thread_heap()).
  bool to_another_host;  ///< Whose ranks do not share their heaps with this one's.
};

/// The first word that keeps the frames here. The younger mark and the room for its result are
/// passed over, since only the runtime reads them or nothing has been written there yet; its
/// arguments are not.
word_that_stays find_word_that_stays(const leaving_frames& frames);

/// True when the kernel has something mapped in the page of `address`. A system call.
bool is_mapped(std::uint64_t address);

}  // namespace sojourn::detail
