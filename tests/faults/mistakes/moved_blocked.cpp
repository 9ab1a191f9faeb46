// SPDX-License-Identifier: Apache-2.0
// A thread that is moved from another rank while it waits for a future.
#include <array>
#include <map>

#include "moved.hpp"
using namespace sojourn;

bool may_go_on = false;  // of the last rank

future<void> asks_until_open() {
  return rpc(last(), [] {
    while (!may_go_on) yield();
  });
}

void asks_bad() {
  auto* factor = new long(5);
  asks_until_open().get();
  reads(factor);
  delete factor;
}
void asks_good() {
  std::pmr::map<long, long> factors(thread_heap());  // comes along
  factors[2] = 5;
  asks_until_open().get();
  reads(&factors[2]);
}

int main(int argc, char** argv) {
  return run(argc, argv, [bad = is_bad(argc, argv)] {
    if (rank_me() != 0 || rank_count() == 1) return;
    thread t = spawn(bad ? asks_bad : asks_good);
    yield();
    auto move = [](thread::id_type id) { migrate(thread::of_id(id), last()); };
    rpc(last(), move, t.id()).get();
    rpc(last(), [] { may_go_on = true; }).get();
    t.join();
  });
}
