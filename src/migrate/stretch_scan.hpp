// SPDX-License-Identifier: Apache-2.0
// The look at frames that an idle rank is to get unasked: nobody wrote `via::migrate` there, so a
// frame leaves only when no word in it can be an address of what stays. Words are read at every
// byte, as members of packed structures lie, and count whatever they are aligned to, as a `char*`
// is. Against the pointer scan of frames that were asked to move (scan.hpp), which warns.
//
// What is mapped is asked of the kernel, word by word, when a word looks like an address outside
// the region: a list kept from before would be wrong as soon as the program maps memory, and a
// range takes numbers for addresses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fiber/unwind_tables.hpp"
#include "sojourn/detail/mark.hpp"

namespace sojourn::detail {

/// Frames of one stack slot, [low, high), that are to leave: the youngest, or those between two
/// marks.
struct leaving_frames {
  std::uint64_t low, high;
  const mark* younger;      ///< In these frames; what is younger stays, and was given arguments.
                            ///< Null: nothing is.
  std::uint64_t older;      ///< Address of the mark that they end at, which may be absent.
  std::uint64_t older_end;  ///< Past the older mark, its arguments and its result.
  /// What they have in registers that younger frames save.
  std::array<std::uint64_t, preserved_registers> registers{};
  /// Where they have saved registers of the frames that called them: words that do not leave.
  std::array<std::uint64_t*, preserved_registers> of_older{};
  bool thread_has_heap;  ///< They are of a thread with a heap of its own (thread_heap()).
};

enum class stays_with : std::uint8_t {
  nothing,
  private_memory,  ///< The C library's heap, libraries, mapped memory.
  older_frames,    ///< Of the same stack.
  another_stack,
  thread_heap,
  these_frames,  ///< An argument of the younger child, which stays while these leave.
};

struct word_that_stays {
  stays_with what = stays_with::nothing;
  std::uint64_t at = 0;  ///< Where the word lies.
  std::uint64_t word = 0;
};

/// The first word that keeps them here. Words that the runtime has not written yet, or that only it
/// reads, are passed over: those of the younger mark but its arguments.
word_that_stays find_word_that_stays(const leaving_frames& frames);

/// Clear the stack below the frame of the caller, which has left nothing there that counts: frames
/// that lie there later then hold no words of calls that returned, in room that they do not write
/// at once. At most so many bytes; or all that was ever used, which costs a system call.
void clear_stack_below(std::size_t most);
void clear_used_stack_below();

/// True when the kernel has something mapped in the page of `address`. A system call.
bool is_mapped(std::uint64_t address);

}  // namespace sojourn::detail
