// SPDX-License-Identifier: Apache-2.0
// Which ranks run the same program. Ranks of one program have their code at the same addresses, and
// name functions by them. They exchange stacks only if their hosts have the same libraries, too.
// Ranks of different programs exchange only messages that mean the same in all programs: the
// runtime's own, and calls by name (rpc/named.hpp).
#pragma once

#include <cstdint>
#include <string>

namespace sojourn::detail {

/// What a rank has told about its program.
struct rank_program {
  std::uint64_t image;   ///< Equal in ranks of one program.
  std::uint64_t stacks;  ///< Equal in ranks that may exchange stacks.
  const char* name;      ///< For messages to people; the text stays where it is.
};
/// Requires: all ranks have told about their programs. To be called before any message is sent.
void attach_programs(rank_program (*of_rank)(int rank));

/// True when the ranks of this job do not all run one program.
extern bool several_programs;
bool is_of_other_program(int rank);
/// True when `rank` runs another program than this one does.
inline bool runs_other_program(int rank) { return several_programs && is_of_other_program(rank); }

/// True when some ranks of this job exchange no stacks.
extern bool several_kinds_of_stacks;
bool has_other_stacks(int rank);
/// True when no stack goes between `rank` and this one, also because it runs another program.
inline bool takes_no_stacks(int rank) { return several_kinds_of_stacks && has_other_stacks(rank); }

/// "rank 2 (worker)"
std::string rank_and_program(int rank);
/// Why a stack on rank `from` does not go to `to`: a sentence without its end.
std::string why_no_stack_goes(int from, int to);
/// Throws different_program, because a function without a name was called on rank `to`.
[[noreturn]] void refuse_unnamed_call(int to);

}  // namespace sojourn::detail
