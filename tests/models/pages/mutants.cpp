// SPDX-License-Identifier: Apache-2.0
#include "mutants.hpp"

#include <array>
#include <cstdio>
#include <string>

#include "walk.hpp"

namespace page_model {
namespace {

enum class program_kind { random, pointed, small };
const char* name_of(program_kind kind) {
  constexpr std::array names{"random", "pointed", "small"};
  return names[static_cast<std::size_t>(kind)];
}

constexpr std::size_t states_of_pointed_max = 1000000;
constexpr std::size_t states_of_small_max = 100000;
constexpr std::uint64_t small_programs = 200;

/// A program that notices when a rule is broken: the seed of a random one, or the number of a
/// pointed one, from 1 on.
struct witness {
  rule broken;
  protocol how;
  program_kind kind;
  std::uint64_t number;
};

// The first that `search_for_programs_that_notice` finds.
constexpr std::array witnesses{
    witness{rule::one_diff_per_interval, protocol::lmw, program_kind::random, 104},
    witness{rule::protect_at_close, protocol::lmw, program_kind::random, 84},
    witness{rule::protect_at_close, protocol::lsw, program_kind::random, 43},
    witness{rule::close_before_notices, protocol::lmw, program_kind::random, 104},
    witness{rule::flush_before_applying, protocol::lmw, program_kind::random, 419},
    witness{rule::ask_from_first_lacking, protocol::lmw, program_kind::random, 1308097},
    witness{rule::fetch_until_nothing_lacks, protocol::lmw, program_kind::random, 112},
    witness{rule::apply_in_order, protocol::lmw, program_kind::random, 63},
    witness{rule::apply_own_diffs_too, protocol::lmw, program_kind::random, 207},
    witness{rule::serve_the_twin, protocol::lmw, program_kind::random, 3467},
    witness{rule::protect_when_first_served, protocol::lmw, program_kind::random, 10},
    witness{rule::page_only_if_it_has_all, protocol::lmw, program_kind::random, 33970},
    witness{rule::page_has_own, protocol::lmw, program_kind::random, 2765716},
    witness{rule::hold_later_epochs, protocol::lmw, program_kind::random, 145},
    witness{rule::agree_on_readers, protocol::lmw, program_kind::random, 27645},
    witness{rule::drop_at_exclusive, protocol::lmw, program_kind::random, 24},
    witness{rule::drop_fetches_in_flight, protocol::lmw, program_kind::random, 22987},
    witness{rule::exclusive_only_if_valid, protocol::lmw, program_kind::random, 8333},
    witness{rule::refetch_before_arrival, protocol::lmw, program_kind::random, 721},
    witness{rule::keep_where_last_written, protocol::lmw, program_kind::random, 22087},
    witness{rule::drop_at_collection, protocol::lmw, program_kind::random, 95341},
    witness{rule::wait_for_fetches_before_done, protocol::lmw, program_kind::random, 1484},
    witness{rule::no_fetch_after_done, protocol::lmw, program_kind::random, 31026},
    witness{rule::notice_lost_pages, protocol::lsw, program_kind::random, 2542},
    witness{rule::count_at_transfer, protocol::lsw, program_kind::random, 2542},
    witness{rule::stamp_closed_version, protocol::lsw, program_kind::random, 162},
    witness{rule::check_version_on_arrival, protocol::lsw, program_kind::random, 3519},
    witness{rule::one_request_per_page, protocol::lsw, program_kind::random, 133},
    witness{rule::one_request_per_page, protocol::seq, program_kind::random, 1},
    witness{rule::use_before_leaving, protocol::lsw, program_kind::pointed, 1},
    witness{rule::use_before_leaving, protocol::seq, program_kind::pointed, 1},
    witness{rule::count_acknowledgements, protocol::seq, program_kind::random, 14},
    witness{rule::decide_data_at_home, protocol::seq, program_kind::random, 14},
    witness{rule::hold_in_order, protocol::seq, program_kind::random, 54},
    witness{rule::hold_by_thread, protocol::seq, program_kind::random, 210},
    witness{rule::move_with_notices, protocol::lmw, program_kind::random, 194},
    witness{rule::move_with_notices, protocol::lsw, program_kind::random, 1042},
    witness{rule::ask_for_what_others_know, protocol::lmw, program_kind::random, 2078},
};

/// What failed in a run of the program, or nothing.
std::string run(protocol how, program_kind kind, std::uint64_t number, std::optional<rule> broken) {
  totals ignored;
  switch (kind) {
    case program_kind::random:
      return random_walk(random_program(how, number), number, broken, ignored);
    case program_kind::pointed:
      return all_interleavings(pointed_programs(how)[number - 1], states_of_pointed_max, broken,
                               ignored);
    case program_kind::small:
      return all_interleavings(small_program(how, number), states_of_small_max, broken, ignored);
  }
  return "";
}

const witness* witness_of(rule broken, protocol how) {
  for (const witness& w : witnesses) {
    if (w.broken == broken && w.how == how) return &w;
  }
  return nullptr;
}

bool known_program_notices(const rule_description& r, protocol how) {
  const witness* w = witness_of(r.which, how);
  if (w == nullptr) {
    std::printf("%-6s %s %s: no program is known to notice\n", r.paragraphs, name_of(how), r.name);
    return false;
  }
  const std::string seen = run(how, w->kind, w->number, r.which);
  const std::string seen_without = run(how, w->kind, w->number, std::nullopt);
  std::printf("%-6s %s %s: %s program %llu: %s\n", r.paragraphs, name_of(how), r.name,
              name_of(w->kind), static_cast<unsigned long long>(w->number),
              seen.empty() ? "NOT NOTICED" : seen.c_str());
  if (!seen_without.empty())
    std::printf("  that program fails with all rules kept, too: %s\n", seen_without.c_str());
  return !seen.empty() && seen_without.empty();
}

bool search_for_program(const rule_description& r, protocol how, std::uint64_t programs) {
  auto is_found = [&](program_kind kind, std::uint64_t last) {
    for (std::uint64_t number = 1; number <= last; ++number) {
      const std::string seen = run(how, kind, number, r.which);
      if (seen.empty()) continue;
      std::printf("%-6s %s %s: %s program %llu: %s\n", r.paragraphs, name_of(how), r.name,
                  name_of(kind), static_cast<unsigned long long>(number), seen.c_str());
      return true;
    }
    return false;
  };
  const bool found = is_found(program_kind::random, programs) ||
                     is_found(program_kind::pointed, pointed_programs(how).size()) ||
                     is_found(program_kind::small, small_programs);
  if (!found) std::printf("%-6s %s %s: NOT NOTICED\n", r.paragraphs, name_of(how), r.name);
  std::fflush(stdout);
  return found;
}

template <class Try>
bool all_are_noticed(Try is_noticed) {
  int mutants = 0;
  int noticed = 0;
  for (const rule_description& r : all_rules) {
    for (protocol how : all_protocols) {
      if (!r.belongs_to(how)) continue;
      ++mutants;
      noticed += is_noticed(r, how);
    }
  }
  std::printf("%d of %d mutants noticed\n", noticed, mutants);
  return noticed == mutants;
}

}  // namespace

bool known_programs_notice_mutants() { return all_are_noticed(known_program_notices); }

bool search_for_programs_that_notice(std::uint64_t programs) {
  return all_are_noticed([&](const rule_description& r, protocol how) {
    return search_for_program(r, how, programs);
  });
}

}  // namespace page_model
