// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <string>

#include "job.hpp"
#include "program.hpp"
#include "shared/rules.hpp"

static unsigned long long current_seed;
static std::string* current_log;
#include <csignal>
int main(int argc, char** argv) {
  std::string command = argc > 1 ? argv[1] : "";
  std::signal(SIGABRT, [](int) {
    std::printf("aborted at %llu\n", current_seed);
    std::fflush(stdout);
  });
  simulated::program_sizes sizes;
  if (const char* b = std::getenv("BREAK"))
    sojourn::detail::pages::broken = static_cast<sojourn::detail::pages::rule>(std::atoi(b));
  if (const char* b = std::getenv("PAGES")) sizes.pages = std::atoi(b);
  if (const char* b = std::getenv("RANKS")) sizes.ranks = std::atoi(b);
  if (const char* b = std::getenv("PHASES")) sizes.phases = std::atoi(b);
  if (const char* b = std::getenv("STEPS")) sizes.steps = std::atoi(b);
  if (const char* b = std::getenv("LOCKS")) sizes.locks = std::atoi(b);
  simulated::totals sum;
  if (command == "show") {
    auto seed = std::strtoull(argv[2], nullptr, 10);
    auto p = simulated::random_program(seed, sizes);
    std::string log;
    std::printf("%s", simulated::text_of(p).c_str());
    std::signal(SIGABRT, [](int) {
      std::printf("%s\n", current_log->c_str());
      std::fflush(stdout);
    });
    current_log = &log;
    std::string why = simulated::run(p, seed, sum, &log);
    std::printf("%s%s\n", log.c_str(), why.c_str());
    return !why.empty();
  }
  auto first = std::strtoull(argv[1], nullptr, 10), count = std::strtoull(argv[2], nullptr, 10);
  int bad = 0;
  for (auto seed = first; seed < first + count; ++seed) {
    current_seed = seed;
    auto p = simulated::random_program(seed, sizes);
    std::string why = simulated::run(p, seed, sum);
    if (!why.empty()) {
      std::printf("%llu: %s\n", static_cast<unsigned long long>(seed), why.c_str());
      if (++bad == 3) break;
    }
  }
  std::printf("%lu programs, %lu steps, %lu faults, %lu messages, %d bad\n", sum.programs,
              sum.steps, sum.faults, sum.messages, bad);
  return bad != 0;
}
