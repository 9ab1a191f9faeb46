// SPDX-License-Identifier: Apache-2.0
// A fiber waits while it holds a lock for readers; one that wants to write then stops its rank.
#include <cstdio>
#include <cstring>
#include <shared_mutex>

#include <sojourn/sojourn.hpp>
using namespace sojourn;

std::shared_mutex guard;
long value = 1;

long read_bad() {
  const std::shared_lock lock(guard);
  return value + rpc(rank_count() - 1, [] { return 1L; }).get();
}
long read_good() {
  const long more = rpc(rank_count() - 1, [] { return 1L; }).get();
  const std::shared_lock lock(guard);
  return value + more;
}
void add_one() {
  const std::lock_guard lock(guard);
  ++value;
}

int main(int argc, char** argv) {
  const bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto reader = fork(bad ? read_bad : read_good);
    fork(add_one).get();
    std::printf("%ld\n", reader.get());
  });
}
