// SPDX-License-Identifier: Apache-2.0
// A thread that is moved by another fiber while memory of its rank is in its frame.
#include <sojourn/sojourn.hpp>

#include <chrono>
#include <cstring>
#include <vector>
using namespace sojourn;
using namespace std::chrono_literals;

template <class Visits>
[[gnu::noinline]] void count_in(Visits& visits) {
  ++visits[0];
}

// bad
void count_bad() {
  std::vector<long> visits{1};  // on the rank where it began
  sleep_for(200ms);             // moved meanwhile, by whoever knows its name
  count_in(visits);
}

// good
void count_good() {
  std::pmr::vector<long> visits(1, 1L, thread_heap());  // comes along
  sleep_for(200ms);
  count_in(visits);
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    thread t = spawn(bad ? count_bad : count_good);
    yield();
    migrate(t, rank_count() - 1);
    t.join();
  });
}
