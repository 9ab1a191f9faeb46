// SPDX-License-Identifier: Apache-2.0
// A const method that uses what belongs to its rank, called without a word: docs/automatic.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>

using namespace sojourn;

struct shard {
  long size = 0;

  rank_t where() const { return rank_me(); }
};

// bad: after some calls the method runs here, on a copy
rank_t place_bad(global_ptr<shard> s) {
  rank_t last = -1;
  for (int i = 0; i < 100; ++i) last = s.call<&shard::where>();
  return last;
}

// good: the method runs where the object is
rank_t place_good(global_ptr<shard> s) {
  rank_t last = -1;
  for (int i = 0; i < 100; ++i) last = s.call<&shard::where>(via::rpc);
  return last;
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() == 0) {
      const global_ptr<shard> last = make<shard>(rank_count() - 1);
      std::printf("bad: rank %d\n", place_bad(last));
      std::printf("good: rank %d\n", place_good(last));
    }
    return 0;
  });
}
