// SPDX-License-Identifier: Apache-2.0
#include "message/programs.hpp"

#include "base/check.hpp"
#include "memory/address_map.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

bool several_programs = false;
bool several_kinds_of_stacks = false;

namespace {

/// One for each rank.
rank_program* programs = nullptr;

}  // namespace

void attach_programs(rank_program (*of_rank)(int rank)) {
  programs = runtime_array<rank_program>(static_cast<std::size_t>(job.count));
  for (int r = 0; r < job.count; ++r) {
    programs[r] = of_rank(r);
    several_programs = several_programs || programs[r].image != programs[0].image;
    several_kinds_of_stacks = several_kinds_of_stacks || programs[r].stacks != programs[0].stacks;
  }
}

bool is_of_other_program(int rank) { return programs[rank].image != programs[job.me].image; }

bool has_other_stacks(int rank) { return programs[rank].stacks != programs[job.me].stacks; }

std::string rank_and_program(int rank) {
  return format("rank %d (%s)", rank, programs != nullptr ? programs[rank].name : "?");
}

std::string why_no_stack_goes(int from, int to) {
  if (programs[from].image == programs[to].image) {
    return format("the hosts of %s and %s differ, so stacks do not go between them",
                  rank_and_program(to).c_str(), rank_and_program(from).c_str());
  }
  return format("%s runs another program than %s, and stacks go to ranks of one program only",
                rank_and_program(to).c_str(), rank_and_program(from).c_str());
}

void refuse_unnamed_call(int to) {
  throw different_program(format(
      "%s calls a function or method without a name on %s, which runs another program: give it a "
      "name with sojourn::method (docs/mpmd.md)",
      rank_and_program(job.me).c_str(), rank_and_program(to).c_str()));
}

}  // namespace sojourn::detail
