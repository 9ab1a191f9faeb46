// SPDX-License-Identifier: Apache-2.0
// The right to answer a wait, as a value.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <utility>
#include <vector>

using namespace sojourn;

// A barrier that counts whoever comes, made of continuations.
struct meeting {
  int expected = 0;
  std::vector<continuation<int>> here;

  void arrive(continuation<int> answer) {
    here.push_back(std::move(answer));
    if (static_cast<int>(here.size()) < expected) return;
    for (int place = 0; auto& who : std::exchange(here, {})) who(place++);
  }
};

// Looks for the rank that has the answer; that one replies straight to who asked.
void find(continuation<rank_t> answer, long key) {
  if (key % rank_count() == rank_me()) return answer(rank_me());
  rpc_ff((rank_me() + 1) % rank_count(), find, std::move(answer), key);
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    global_ptr<meeting> all;
    if (rank_me() == 0) {
      all = make<meeting>(0);
      all.local()->expected = rank_count();
    }
    all = broadcast(all);
    const int place = call_cc<&meeting::arrive>(all);
    const int places = reduce(place, [](int a, int b) { return a + b; });

    const rank_t found = call_cc(find, 1234L);
    if (rank_me() == 0) {
      const int ranks = rank_count();
      std::printf("%s met, and %s\n", places == ranks * (ranks - 1) / 2 ? "all" : "not all",
                  found == 1234 % ranks ? "found it" : "did not find it");
    }
  });
}
