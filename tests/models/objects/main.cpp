// SPDX-License-Identifier: Apache-2.0
// All states of small jobs whose ranks run src/object/coherence: one writer or many readers, each
// call ends once, nobody reads an older version than the last one written, nothing is stuck and
// nothing is left over.
//
//   model_objects [small | large | NAME]   goes through all states of these jobs
//   model_objects mistakes [RULE]          breaks one rule after the other: each must be noticed
//   model_objects starvation [some | all]  a call ends, whatever others do without end
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "objects/explore.hpp"
#include "objects/job.hpp"

namespace models::objects {

namespace {

using op = operation;
constexpr unsigned all_reads = bit(op::read_copy) | bit(op::read_copy_suspends) |
                               bit(op::read_run) | bit(op::read_run_suspends);
constexpr unsigned all_writes = bit(op::write_take) | bit(op::write_take_suspends) |
                                bit(op::write_run) | bit(op::write_run_suspends);
constexpr unsigned everything = all_reads | all_writes | bit(op::read_take);
constexpr unsigned usual =
    bit(op::read_copy) | bit(op::write_take) | bit(op::read_run) | bit(op::write_run);
constexpr unsigned suspending =
    bit(op::read_copy_suspends) | bit(op::write_take_suspends) | bit(op::write_run_suspends);

enum class search { verify, shortest, starvation };

explore::outcome explored(const configuration& c, search how) {
  const job model(c);
  if (how == search::verify) return explore::verify(model);
  if (how == search::shortest) return explore::shortest(model, 3'000'000);
  // Messages, fibers that can go on, ranks.
  const std::uint64_t fair = (std::uint64_t{1} << 62) - 1;
  return explore::starvation(model, fair);
}

void print_trace(const explore::outcome& e) {
  for (std::size_t i = 0; i < e.trace.size(); ++i)
    std::printf("  %2zu %s\n", i + 1, e.trace[i].c_str());
}

bool report(const configuration& c, search how) {
  const explore::outcome r = explored(c, how);
  std::printf("%-50s %9zu states %10zu transitions %6.1f s  %s%s\n", c.name.c_str(), r.states,
              r.transitions, r.seconds, r.problem.empty() ? "holds" : r.problem.c_str(),
              r.complete ? "" : " (stopped early)");
  print_trace(r);
  std::fflush(stdout);
  return r.complete && r.problem.empty();
}

std::vector<fiber_plan> one_each(int ranks, int operations, unsigned kinds) {
  std::vector<fiber_plan> plans;
  for (int rank = 0; rank < ranks; ++rank) plans.push_back({rank, operations, kinds});
  return plans;
}

std::vector<configuration> small_jobs() {
  return {
      {.name = "2 ranks, 2 calls of 9 kinds",
       .fibers = one_each(2, 2, everything),
       .evictions = 1,
       .returns = 1},
      {.name = "the same, writes noted",
       .fibers = one_each(2, 2, everything),
       .evictions = 1,
       .returns = 1,
       .notes_changes = true},
      {.name = "2 ranks, 3 fibers, 1 call of 9 kinds",
       .fibers = {{0, 1, everything}, {1, 1, everything}, {1, 1, everything}},
       .evictions = 1,
       .returns = 1},
      {.name = "3 ranks, 1 call of 5 kinds",
       .ranks = 3,
       .fibers = one_each(3, 1, usual | bit(op::read_take)),
       .evictions = 1,
       .returns = 1},
      {.name = "2 ranks, 2 calls of 5 kinds, destroy",
       .fibers = one_each(2, 2, usual | bit(op::destroy)),
       .evictions = 1,
       .returns = 1},
      {.name = "3 ranks, 1 call of 5 kinds, destroy",
       .ranks = 3,
       .fibers = one_each(3, 1, usual | bit(op::destroy)),
       .evictions = 1},
      {.name = "2 ranks, 2 calls that wait for a write",
       .fibers = one_each(2, 2, usual | suspending | bit(op::read_run_suspends)),
       .waits = true},
      {.name = "2 objects, 2 ranks, 2 calls of 4 kinds",
       .objects = 2,
       .fibers = one_each(2, 2, usual),
       .evictions = 1},
      {.name = "rank 1 ends, 2 ranks, writes noted",
       .fibers = one_each(2, 2, usual),
       .evictions = 1,
       .returns = 1,
       .notes_changes = true,
       .may_end = 1},
      {.name = "rank 1 ends, 2 ranks, 2 calls of 4 kinds",
       .fibers = one_each(2, 2, usual),
       .evictions = 1,
       .returns = 1,
       .may_end = 1},
      {.name = "home ends, 2 ranks, 2 calls of 4 kinds",
       .fibers = one_each(2, 2, usual),
       .evictions = 1,
       .returns = 1,
       .may_end = 0},
      {.name = "rank 1 ends, 3 ranks, 1 call of 4 kinds",
       .ranks = 3,
       .fibers = one_each(3, 1, usual),
       .may_end = 1},
      {.name = "home ends, 3 ranks, 1 call of 4 kinds",
       .ranks = 3,
       .fibers = one_each(3, 1, usual),
       .may_end = 0},
      {.name = "2 ranks, 2 calls of 9 kinds, one class",
       .fibers = one_each(2, 2, everything),
       .evictions = 1,
       .returns = 1,
       .one_class = true},
  };
}

std::vector<configuration> large_jobs() {
  return {
      {.name = "3 ranks, 1 call of 9 kinds",
       .ranks = 3,
       .fibers = one_each(3, 1, everything),
       .evictions = 1,
       .returns = 1},
      {.name = "3 ranks, 1 call of 9 kinds, writes noted",
       .ranks = 3,
       .fibers = one_each(3, 1, everything),
       .evictions = 1,
       .returns = 1,
       .notes_changes = true},
      {.name = "rank 1 ends, 3 ranks, 1 call of 6 kinds",
       .ranks = 3,
       .fibers = one_each(3, 1, usual | bit(op::read_copy_suspends) | bit(op::write_take_suspends)),
       .may_end = 1},
      {.name = "2 ranks, 3 calls of 9 kinds",
       .fibers = one_each(2, 3, everything),
       .evictions = 1,
       .returns = 1},
      {.name = "2 ranks, 3 fibers, 2 calls of 6 kinds",
       .fibers = {{0, 2, usual}, {1, 2, usual | suspending}, {1, 2, usual}},
       .evictions = 1,
       .returns = 1},
      {.name = "3 ranks, 2 calls of 4 kinds",
       .ranks = 3,
       .fibers = one_each(3, 2, usual),
       .evictions = 1},
      {.name = "3 ranks, 2 calls that suspend", .ranks = 3, .fibers = one_each(3, 2, suspending)},
      {.name = "3 ranks, 1 call that waits for a write",
       .ranks = 3,
       .fibers = one_each(3, 1, usual | suspending | bit(op::read_run_suspends)),
       .waits = true},
      {.name = "4 ranks, 1 call of 5 kinds",
       .ranks = 4,
       .fibers = one_each(4, 1, usual | bit(op::read_take))},
      {.name = "3 ranks, 1 call of 8 kinds, destroy",
       .ranks = 3,
       .fibers = one_each(3, 1, usual | suspending | bit(op::destroy)),
       .evictions = 1,
       .returns = 1},
      {.name = "2 objects, 3 ranks, 1 call of 5 kinds",
       .ranks = 3,
       .objects = 2,
       .fibers = one_each(3, 1, usual | bit(op::write_take_suspends))},
      {.name = "home ends, 3 ranks, 1 call of 6 kinds",
       .ranks = 3,
       .fibers = one_each(3, 1, usual | bit(op::read_copy_suspends) | bit(op::write_take_suspends)),
       .evictions = 1,
       .may_end = 0},
      {.name = "rank 1 ends, 3 ranks, 2 calls of 2 kinds",
       .ranks = 3,
       .fibers = one_each(3, 2, bit(op::read_copy) | bit(op::write_take)),
       .may_end = 1},
  };
}

/// One call of `kind`, at home or away, while two other fibers call without end.
configuration without_end(op kind, bool is_at_home) {
  return {.name = std::string("a call of kind ") + std::to_string(static_cast<int>(kind)) +
                  (is_at_home ? ", at home," : ", away,") + " against two fibers without end",
          .fibers = {{is_at_home ? 0 : 1, 1, bit(kind)}, {0, 1, usual, true}, {1, 1, usual, true}},
          .has_versions = false};
}

/// A job in which someone notices that a rule is broken.
struct noticed_in {
  configuration where;
  search how = search::shortest;
};
noticed_in job_without(rule r) {
  switch (r) {
    case rule::writes_behind_orders:
      return {without_end(op::write_take, false), search::starvation};
    case rule::move_takes_copies_back:
      return {{.name = "3 ranks", .ranks = 3, .fibers = one_each(3, 1, usual)}};
    case rule::object_before_news:
    case rule::home_asks_receiver:
    case rule::dead_give_up:
      return {{.name = "3 ranks, one ends",
               .ranks = 3,
               .fibers = one_each(3, 2, bit(op::read_copy) | bit(op::write_take)),
               .may_end = 1}};
    default:
      return {
          {.name = "2 ranks", .fibers = one_each(2, 2, everything), .evictions = 1, .returns = 1}};
  }
}

bool find_mistakes(int only) {
  bool all_found = true;
  for (int r = 0; r < static_cast<int>(rule::count_); ++r) {
    if (only >= 0 && r != only) continue;
    const auto [where, how] = job_without(static_cast<rule>(r));
    broken = static_cast<rule>(r);
    const explore::outcome e = explored(where, how);
    broken = rule::count_;
    std::printf(
        "without rule %2d: %-20s %8zu states, %2zu steps: %s\n", r, where.name.c_str(), e.states,
        e.trace.size(),
        e.problem.empty() ? "NOT FOUND" : e.problem.substr(0, e.problem.find('\n')).c_str());
    if (only >= 0) print_trace(e);
    std::fflush(stdout);
    all_found &= !e.problem.empty();
  }
  return all_found;
}

bool find_starvation(bool all) {
  bool is_good = true;
  const std::vector<op> kinds = all ? std::vector<op>{op::read_copy,  op::read_copy_suspends,
                                                      op::write_take, op::write_take_suspends,
                                                      op::read_take,  op::write_run,
                                                      op::read_run}
                                    : std::vector<op>{op::write_run};
  for (const op kind : kinds) {
    is_good &= report(without_end(kind, false), search::starvation);
    if (all) is_good &= report(without_end(kind, true), search::starvation);
  }
  return is_good;
}

}  // namespace

}  // namespace models::objects

int main(int argc, char** argv) {
  using namespace models::objects;
  const std::string what = argc > 1 ? argv[1] : "small";
  if (what == "mistakes") return find_mistakes(argc > 2 ? std::atoi(argv[2]) : -1) ? 0 : 1;
  if (what == "starvation")
    return find_starvation(argc > 2 && std::string(argv[2]) == "all") ? 0 : 1;
  bool is_good = true;
  const auto run = [&](const std::vector<configuration>& jobs, bool all) {
    for (const configuration& c : jobs) {
      if (all || c.name.find(what) != std::string::npos) is_good &= report(c, search::verify);
    }
  };
  run(small_jobs(), what == "small");
  run(large_jobs(), what == "large");
  return is_good ? 0 : 1;
}
