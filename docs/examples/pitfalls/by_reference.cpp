// SPDX-License-Identifier: Apache-2.0
// An activation that reads its caller's frame after it has moved.
#include <sojourn/sojourn.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
using namespace sojourn;

struct cell {
  long value = 7;
  long get() const { return value; }
};

// bad
struct hidden {
  std::uint64_t key;  // an address in disguise: neither types nor the scan see it
};
long lookup_bad(global_ptr<cell> c, hidden h) {
  long value = c.call<&cell::get>(via::migrate);
  return value + *reinterpret_cast<long*>(h.key ^ static_cast<std::uint64_t>(value));
}

// good
long lookup_good(global_ptr<cell> c, long key) { return c.call<&cell::get>(via::migrate) + key; }

[[gnu::noinline]] long find(bool bad, global_ptr<cell> c) {
  long key = 42;
  if (bad) return activate(lookup_bad, c, hidden{reinterpret_cast<std::uint64_t>(&key) ^ 7});
  return activate(lookup_good, c, key);
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() == 0) std::printf("%ld\n", find(bad, make<cell>(rank_count() - 1)));
  });
}
