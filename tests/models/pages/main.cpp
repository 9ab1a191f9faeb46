// SPDX-License-Identifier: Apache-2.0
// A model of the protocols that keep pages of shared memory consistent between ranks. It runs small
// programs step by step, in one order of steps or in all, and checks at every load that the value
// is the one that was stored last. It also finds deadlocks, states that come again (livelocks), and
// messages that are left at the end. It knows nothing of lost messages, of time, of more than three
// ranks, or of what orders threads beyond locks, barriers and moves. Where to find what:
//
//   rules.hpp            the protocols, a sentence for each rule, and the rules that can be broken
//   program.hpp          programs, which random_program.cpp and pointed_programs.cpp make
//   small.hpp, state.hpp all that there is between two steps
//   machine.hpp          the steps of threads and messages; locks.cpp, barriers.cpp
//   lmw.hpp, lsw.hpp, seq.hpp
//                        what each protocol does
//   walk.hpp             running a program in one random order of steps, or in all
//   mutants.hpp          breaking each rule, to see that it is needed
//   main.cpp             the command line
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "mutants.hpp"
#include "walk.hpp"

using namespace page_model;

namespace {

constexpr std::string_view help =
    R"(model_pages: tries the protocols that keep pages of shared memory consistent

  model_pages random PROTOCOL FIRST COUNT [--without RULE]
      Runs COUNT random programs, whose seeds are FIRST, FIRST + 1, …, each in one
      random order of steps. FIRST may be `fresh`: SOJOURN_TEST_SEED, or else a seed that nobody has tried,
      which is printed.
  model_pages all PROTOCOL FIRST COUNT [MOST] [--without RULE]
      Tries all orders of steps of the pointed programs, and then of COUNT small
      random ones; of each program, until it has come to MOST states [3000000].
  model_pages show PROTOCOL SEED [--without RULE]
      Prints the random program of that seed, and then each step of its run.
  model_pages mutants
      Breaks each rule, one at a time, and runs the program that is known to notice.
  model_pages mutants MOST
      Searches for such programs: among the first MOST random ones, the pointed
      ones and the small ones. That takes minutes to hours.

PROTOCOL is lmw (lazy, several writers at a time, diffs), lsw (lazy, one writer at a
time) or seq (sequentially consistent). RULE is a rule to break; rules.hpp says what
each means:
)";

constexpr std::string_view examples = R"(
For a first look at a protocol, and at what one of its rules is for:

  model_pages show lsw 1
  model_pages show lmw 24 --without drop_at_exclusive

The exit status is 0 if no run failed, and with `mutants` if all were noticed, 1 if
not, and 2 if the command is not understood.
)";

void print_help() {
  std::printf("%s\n", std::string(help).c_str());
  for (const rule_description& r : all_rules) {
    std::string owners;
    for (protocol p : all_protocols) {
      if (r.belongs_to(p)) owners += std::string(" ") + name_of(p);
    }
    std::printf("  %-30s%-8s%s\n", r.name, r.paragraphs, owners.c_str());
  }
  std::printf("%s", std::string(examples).c_str());
}

/// What is wrong with the command.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::uint64_t number_of(const std::string& word) {
  std::uint64_t n = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, n);
  if (error != std::errc{} || stop != end) throw usage_error("`" + word + "` is not a number");
  return n;
}
std::uint64_t seed_of(const std::string& word) {
  if (word != "fresh") return number_of(word);
  const char* given = std::getenv("SOJOURN_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? number_of(given) : std::random_device()();
  std::printf("the first seed is %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}
struct command {
  std::vector<std::string> words;
  std::optional<rule> broken;

  const std::string& word(std::size_t i) const {
    if (i >= words.size()) throw usage_error("`" + words[0] + "` takes more words");
    return words[i];
  }
  /// The protocol, which is the second word.
  protocol how() const {
    const auto p = protocol_named(word(1));
    if (!p) throw usage_error("`" + word(1) + "` is no protocol; these are lmw, lsw and seq");
    for (const rule_description& r : all_rules) {
      if (broken == r.which && !r.belongs_to(*p))
        throw usage_error("`" + std::string(r.name) + "` is no rule of " + word(1));
    }
    return *p;
  }
  /// The option that names the broken rule, or nothing.
  std::string option() const {
    for (const rule_description& r : all_rules) {
      if (broken == r.which) return std::string(" --without ") + r.name;
    }
    return "";
  }
  void require_at_most(std::size_t count) const {
    if (words.size() > count) throw usage_error("`" + words[count] + "` is one word too many");
  }
};

command parse(int argc, char** argv) {
  command c;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word != "--without") {
      c.words.push_back(word);
      continue;
    }
    if (++i == argc) throw usage_error("`--without` takes the name of a rule");
    c.broken = rule_named(argv[i]);
    if (!c.broken) throw usage_error("`" + std::string(argv[i]) + "` is no rule");
  }
  if (c.words.empty()) c.words.push_back("help");
  return c;
}

/// More failures than these say no more.
constexpr unsigned long failures_printed_max = 5;

int run_random(const command& c) {
  c.require_at_most(4);
  const protocol how = c.how();
  const std::uint64_t count = number_of(c.word(3));
  const std::uint64_t first = seed_of(c.word(2));
  totals sum;
  for (std::uint64_t i = 0; i < count && sum.failures < failures_printed_max; ++i) {
    const std::uint64_t seed = first + i;
    const std::string fault = random_walk(random_program(how, seed), seed, c.broken, sum);
    ++sum.programs;
    if (fault.empty()) continue;
    ++sum.failures;
    std::printf("%s; to see it step by step: model_pages show %s %llu%s\n", fault.c_str(),
                name_of(how), static_cast<unsigned long long>(seed), c.option().c_str());
  }
  std::printf(
      "random %s: %lu programs, %lu failures, %lu steps, %lu faults, %lu messages, %lu diffs made, "
      "%lu applied\n",
      name_of(how), sum.programs, sum.failures, sum.steps, sum.faults, sum.messages, sum.diffs_made,
      sum.diffs_applied);
  return sum.failures == 0 ? 0 : 1;
}

int run_all(const command& c) {
  c.require_at_most(5);
  const protocol how = c.how();
  const std::uint64_t count = number_of(c.word(3));
  const std::uint64_t first = seed_of(c.word(2));
  const std::size_t states_max = c.words.size() > 4 ? number_of(c.word(4)) : 3000000;
  totals sum;
  auto run = [&](const program& p) {
    const std::string fault = all_interleavings(p, states_max, c.broken, sum);
    ++sum.programs;
    if (fault.empty() || ++sum.failures > failures_printed_max) return;
    std::printf("%s%s\n", text_of(p).c_str(), fault.c_str());
  };
  for (const program& p : pointed_programs(how)) run(p);
  for (std::uint64_t i = 0; i < count; ++i) run(small_program(how, first + i));
  std::printf("all %s: %lu programs, %lu failures, %lu steps, %lu states, %lu programs cut short\n",
              name_of(how), sum.programs, sum.failures, sum.steps, sum.states, sum.cut_short);
  return sum.failures == 0 ? 0 : 1;
}

int run_show(const command& c) {
  c.require_at_most(3);
  const std::uint64_t seed = number_of(c.word(2));
  const program p = random_program(c.how(), seed);
  totals ignored;
  std::string log;
  const std::string fault = random_walk(p, seed, c.broken, ignored, &log);
  std::printf("%s%s%s\n", text_of(p).c_str(), log.c_str(),
              fault.empty() ? "nothing failed" : fault.c_str());
  return fault.empty() ? 0 : 1;
}

int run_mutants(const command& c) {
  c.require_at_most(2);
  if (c.broken) throw usage_error("`mutants` breaks all rules in turn, and takes no `--without`");
  const bool are_noticed = c.words.size() == 1
                               ? known_programs_notice_mutants()
                               : search_for_programs_that_notice(number_of(c.word(1)));
  return are_noticed ? 0 : 1;
}

int run(const command& c) {
  const std::string& name = c.words[0];
  if (name == "random") return run_random(c);
  if (name == "all") return run_all(c);
  if (name == "show") return run_show(c);
  if (name == "mutants") return run_mutants(c);
  if (name != "help" && name != "--help") throw usage_error("`" + name + "` is no command");
  print_help();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const usage_error& e) {
    std::fprintf(stderr, "model_pages: %s; `model_pages --help` says more.\n", e.what());
    return 2;
  }
}
