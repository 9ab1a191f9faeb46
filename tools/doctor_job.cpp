// SPDX-License-Identifier: Apache-2.0
// The last check: a whole job, of two ranks that call and visit each other.
#include <fmt/format.h>

#include <chrono>

#include "doctor_parts.hpp"
#include "doctor_program.hpp"
#include "sojourn/sojourn.hpp"

namespace sojourn::tools {
namespace {

constexpr int ranks = 2;
// A hundred times what it takes; then something hangs.
constexpr std::chrono::seconds patience{20};

struct visited {
  int value = 0;
  int add(int n) { return value += n; }
};

/// Moves there, so that the rank it ends on is the visited object's.
int visit(global_ptr<visited> there) {
  there.call<&visited::add>(via::migrate, 1);
  return rank_me();
}

}  // namespace

int be_rank() {
  char name[] = "sojourn";
  char* arguments[] = {name, nullptr};
  return run(1, arguments, [] {
    int next = (rank_me() + 1) % rank_count();
    global_ptr<visited> there = make<visited>(next);
    if (there.call<&visited::add>(via::rpc, 1) != 1) return 1;
    if (activate(visit, there) != next) return 1;
    if (there.call<&visited::add>(via::rpc, 1) != 3) return 1;
    int sum = reduce(1, [](int a, int b) { return a + b; });
    destroy(there);
    return sum == rank_count() ? 0 : 1;
  });
}

finding check_job() {
  finding f{"job of two ranks", severity::failure, "", ""};
  std::string self;
  try {
    self = own_file();
  } catch (const error& e) {
    f.found = e.what();
    f.remedy = "mount /proc";
    return f;
  }
  auto started = std::chrono::steady_clock::now();
  outcome o =
      run_program({self, "run", "-n", std::to_string(ranks), self, "doctor", as_rank}, patience);
  std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - started;
  if (o.is_well()) {
    f.level = severity::ok;
    f.found =
        fmt::format("started, called, migrated, reduced and ended in {:.0f} ms", elapsed.count());
    return f;
  }
  f.remedy =
      fmt::format("remedy the failures above; to see all that it says: {} run -n {} {} doctor {}",
                  self, ranks, self, as_rank);
  f.found = why_it_failed(o, patience);
  return f;
}

}  // namespace sojourn::tools
