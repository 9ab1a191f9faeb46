// SPDX-License-Identifier: Apache-2.0
// Threads that move: docs/threads.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <map>
#include <memory_resource>
#include <string>
#include <vector>

using namespace sojourn;

// Visits all ranks and collects what each has; its containers are on a heap that goes along.
void collect(global_ptr<long> result) {
  std::pmr::map<int, std::pmr::string> seen(thread_heap());
  long sum = 0;
  for (rank_t r = 0; r < rank_count(); ++r) {
    migrate(self(), r);
    sum += rank_me() + 1;
    seen[r] = "rank " + std::to_string(rank_me()) + ", as it was seen there";
  }
  store(result, static_cast<long>(seen.size()) * 1000 + sum);
}

// Waits until somebody moves it to the last rank.
void wait_to_be_moved() {
  while (rank_me() != rank_count() - 1) yield();
}

// Goes round until it is told to stop.
void patrol(stop_token token) {
  while (!token.stop_requested()) migrate(self(), (rank_me() + 1) % rank_count());
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() != 0) return;
    auto result = make<long>(0, 0L);
    spawn(collect, result).join();
    std::printf("%ld\n", load(result));

    thread waiting = spawn(wait_to_be_moved);
    try {
      migrate(waiting, rank_count() - 1);
    } catch (const thread_error& e) {
      std::printf("not moved: %s\n", e.what());
    }
    waiting.join();

    stop_source source;
    thread guard =
        spawn_on(rank_count() - 1, thread_options{.name = "guard"}, patrol, source.token());
    source.request_stop();
    guard.join();
  });
}
