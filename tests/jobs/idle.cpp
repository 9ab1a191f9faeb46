// SPDX-License-Identifier: Apache-2.0
// Ranks that wait use no processor time, and wake at once when there is something to do: also with
// more ranks than cores.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

/// The threads of a process, as the kernel sees them.
struct activity {
  bool asleep = true;
  unsigned long long switches = 0;
};

activity activity_of(pid_t process) {
  activity sum;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("State:")) sum.asleep &= line.find('S', 6) != std::string::npos;
      std::size_t colon = line.find("voluntary_ctxt_switches:");
      if (colon == 0) sum.switches += std::stoull(line.substr(line.find(':') + 1));
    }
  }
  return sum;
}

/// Whether there comes a while in which nothing of `processes` runs. They may need some time to
/// come to rest; what spins, or wakes again and again, never does.
bool come_to_rest(const std::vector<pid_t>& processes) {
  for (int look = 0; look < 30; ++look) {
    std::vector<activity> before;
    for (pid_t process : processes) before.push_back(activity_of(process));
    usleep(300'000);
    bool rested = true;
    for (std::size_t i = 0; i < processes.size(); ++i) {
      activity now = activity_of(processes[i]);
      rested &= before[i].asleep && now.asleep && now.switches == before[i].switches;
    }
    if (rested) return true;
  }
  return false;
}

/// Rank 0 looks on while the others wait for it.
template <class Wait>
void costs_nothing(Wait wait) {
  std::vector<pid_t> processes = gather(getpid());
  barrier();
  auto before = counters_now();
  if (rank_me() == 0) {
    processes.erase(processes.begin());
    CHECK(come_to_rest(processes));
  }
  wait();
  if (rank_me() != 0) CHECK((counters_now() - before).sleeps >= 1);
}

void waiting_in_a_barrier_costs_nothing() {
  costs_nothing([] { barrier(); });
}
void waiting_for_a_future_costs_nothing() {
  costs_nothing([] { CHECK_EQUAL(rpc(0, [](int x) { return x; }, 5).get(), 5); });
  barrier();
}

void sleepers_wake_for_every_message() {
  // Long enough between messages that the others sleep each time.
  for (int i = 0; i < 20; ++i) {
    if (rank_me() == 0) {
      usleep(3000);
      // Were a wake-up lost, this would wait until the test's time is over.
      for (rank_t r = 1; r < rank_count(); ++r) {
        CHECK_EQUAL(rpc(r, [](int x) { return x + 1; }, i).get(), i + 1);
      }
    }
  }
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("waiting in a barrier costs nothing", waiting_in_a_barrier_costs_nothing);
    check::claim("waiting for a future costs nothing", waiting_for_a_future_costs_nothing);
    check::claim("sleepers wake for every message", sleepers_wake_for_every_message);
    return check::verdict();
  });
}
