// SPDX-License-Identifier: Apache-2.0
// All states of small jobs whose ranks run src/object/replicas: no rank reads backwards, a rank
// sees its own updates, refresh brings what there was when it began, an update that promises a
// bound is answered when readers are within it, nothing is stuck and nothing is left over.
//
//   model_replicated [small | large | NAME]   goes through all states of these jobs
//   model_replicated mistakes [RULE]          breaks one rule after the other: each must be noticed
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "objects/explore.hpp"
#include "replicated/job.hpp"

namespace models::replicated {

namespace {

using op = operation;
constexpr unsigned usual = bit(op::read) | bit(op::update) | bit(op::refresh);
constexpr unsigned everything = usual | bit(op::destroy);

void print_trace(const explore::outcome& e) {
  for (std::size_t i = 0; i < e.trace.size(); ++i)
    std::printf("  %2zu %s\n", i + 1, e.trace[i].c_str());
}

bool report(const configuration& c) {
  const explore::outcome r = explore::verify(job(c));
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
/// Two fibers of rank 1, and one of the writer.
std::vector<fiber_plan> two_readers(int operations, unsigned kinds) {
  return {{0, operations, bit(op::update)}, {1, operations, kinds}, {1, operations, kinds}};
}

std::string tail(int bound) { return bound == no_bound ? "" : ", bound " + std::to_string(bound); }

std::vector<configuration> small_jobs() {
  std::vector<configuration> jobs;
  for (const int bound : {no_bound, 1, 0}) {
    jobs.push_back({.name = "2 ranks, 3 fibers, 1 or 2 calls" + tail(bound),
                    .fibers = {{0, 2, bit(op::update)}, {1, 2, usual}, {1, 1, usual}},
                    .drops = 1,
                    .bound = bound});
    jobs.push_back({.name = "3 ranks, 1 call" + tail(bound),
                    .ranks = 3,
                    .fibers = one_each(3, 1, usual),
                    .drops = 1,
                    .bound = bound});
    jobs.push_back({.name = "2 ranks, 2 calls, destroy" + tail(bound),
                    .fibers = one_each(2, 2, everything),
                    .drops = 1,
                    .bound = bound});
    jobs.push_back({.name = "a reader ends, 2 ranks, 3 calls" + tail(bound),
                    .fibers = one_each(2, 3, usual),
                    .drops = 1,
                    .bound = bound,
                    .may_end = 1});
    jobs.push_back({.name = "the writer ends, 2 ranks, 2 calls" + tail(bound),
                    .fibers = one_each(2, 2, everything),
                    .drops = 1,
                    .bound = bound,
                    .may_end = 0});
  }
  return jobs;
}

std::vector<configuration> large_jobs() {
  std::vector<configuration> jobs;
  for (const int bound : {no_bound, 1, 0}) {
    jobs.push_back({.name = "2 ranks, 3 fibers, 2 calls" + tail(bound),
                    .fibers = two_readers(2, usual),
                    .drops = 1,
                    .bound = bound});
    jobs.push_back({.name = "2 ranks, 3 fibers, 3 calls" + tail(bound),
                    .fibers = two_readers(3, usual),
                    .drops = 1,
                    .bound = bound});
    jobs.push_back({.name = "3 ranks, 2 calls, 1 drop" + tail(bound),
                    .ranks = 3,
                    .fibers = one_each(3, 2, usual),
                    .drops = 1,
                    .bound = bound});
    jobs.push_back({.name = "3 ranks, 1 call, destroy" + tail(bound),
                    .ranks = 3,
                    .fibers = one_each(3, 1, everything),
                    .drops = 1,
                    .bound = bound});
    jobs.push_back({.name = "a reader ends, 3 ranks, 1 call" + tail(bound),
                    .ranks = 3,
                    .fibers = one_each(3, 1, usual),
                    .bound = bound,
                    .may_end = 1});
    jobs.push_back({.name = "the writer ends, 3 ranks, 1 call" + tail(bound),
                    .ranks = 3,
                    .fibers = one_each(3, 1, usual),
                    .bound = bound,
                    .may_end = 0});
  }
  return jobs;
}

/// The job in which it is noticed that a rule is broken.
configuration job_without(rule r) {
  configuration c{.name = "2 ranks, 3 fibers", .fibers = two_readers(3, usual), .drops = 1};
  switch (r) {
    case rule::push_afterwards:
    case rule::drop_of_its_own:
    case rule::push_before_answer:
      c.fibers = {{0, 3, bit(op::update)}, {1, 2, bit(op::read)}};
      break;
    case rule::wait_for_bound:
    case rule::drop_is_heard:
      c.bound = 0;
      c.fibers = one_each(2, 2, usual);
      break;
    case rule::end_is_final:
      c.fibers = one_each(2, 3, everything);
      break;
    case rule::dead_are_forgotten:
      c.bound = 0;
      c.may_end = 1;
      break;
    case rule::readers_hear_of_dead_writer:
      c.may_end = 0;
      break;
    default:
      break;
  }
  return c;
}

bool find_mistakes(int only) {
  bool all_found = true;
  for (int r = 0; r < static_cast<int>(rule::count_); ++r) {
    if (only >= 0 && r != only) continue;
    const configuration where = job_without(static_cast<rule>(r));
    broken = static_cast<rule>(r);
    const explore::outcome e = explore::shortest(job(where), 3'000'000);
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

}  // namespace

}  // namespace models::replicated

int main(int argc, char** argv) {
  using namespace models::replicated;
  const std::string what = argc > 1 ? argv[1] : "small";
  if (what == "mistakes") return find_mistakes(argc > 2 ? std::atoi(argv[2]) : -1) ? 0 : 1;
  bool is_good = true;
  const auto run = [&](const std::vector<configuration>& jobs, bool all) {
    for (const configuration& c : jobs) {
      if (all || c.name.find(what) != std::string::npos) is_good &= report(c);
    }
  };
  run(small_jobs(), what == "small");
  run(large_jobs(), what == "large");
  return is_good ? 0 : 1;
}
