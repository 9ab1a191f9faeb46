// SPDX-License-Identifier: Apache-2.0
// The places in the program that call objects of other ranks, and what each has learnt about the
// ways to do so (via::automatic). The choice itself is made in automatic/place_costs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "object/copied_objects.hpp"
#include "sojourn/detail/choice.hpp"
#include "sojourn/detail/copies.hpp"

namespace sojourn::detail {

/// Registers the handler of the messages by which ranks tell each other what a migration has cost.
void attach_call_places();

/// How the time of a copy, or of an object, on this rank has ended.
enum class use_end : std::uint8_t { given_up, made_room, goes_on };
/// The number by which a copy or an object is traced to the call that asked for it: see
/// copy_block::asked_at. Never 0.
std::uint32_t number_of_place(std::uint64_t code);
/// A copy came for a call whose way was chosen. It is looked at again while it is here.
void note_copy(copy_block* block, std::uint64_t code);
/// A copy or an object that has come for such a call is used no more.
void note_use_end(const copy_block& block, use_end how);
/// The same of an object that was made here, had come home for the call, and leaves again.
void note_left_home(std::uint32_t asked_at, std::uint32_t uses);
/// No copy, or no object, came for the call.
void note_bringing_refused(std::uint64_t code);

/// This rank is busy with its own objects: if one of them had copies elsewhere, or were elsewhere,
/// all its calls would take longer, and that would cost more than the copy would save.
bool works_on_its_own_objects();

/// Counts a call for which the program says `written`, and which is made as `how` says.
void note_said(std::uint64_t code, const char* method, via written, via how);

/// What a place has come to, on this rank.
struct call_place_use {
  std::uint64_t code;
  const char* method;       ///< The compiler's name.
  bool chooses;             ///< It follows no word; a place may do both at different times.
  via::mechanism said;      ///< In the program.
  via::mechanism now;       ///< What it comes to at the end.
  via::mechanism bringing;  ///< cache or fetch; rpc: neither is possible.
  /// Calls of objects on other ranks, by what was done, in the order of via::mechanism. Calls that
  /// found a copy here, or the object, are none of them.
  std::uint64_t calls[4];
  double cost_of_migrating;  ///< A call, in calls to the owner; below 0: never tried.
  double cost_of_bringing;
  double calls_a_migration;  ///< For so many calls a migration has paid.
  double calls_a_bringing;
  std::uint32_t changes;  ///< How often it has taken another way.
};
/// Those that have been used, those with the most calls first.
std::vector<call_place_use> call_place_uses();

}  // namespace sojourn::detail
