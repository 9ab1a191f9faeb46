// SPDX-License-Identifier: Apache-2.0
// Futures that are made on one rank and taken on another: docs/migration.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>

using namespace sojourn;

struct store_room {
  long items = 40;
  long count() const { return items; }
};

long add_up(global_ptr<store_room> near, global_ptr<store_room> far) {
  future<long> first = near.async<&store_room::count>();  // goes on while this one moves
  long second = far.call<&store_room::count>(via::migrate);
  return first.get() + second;  // taken on the rank of `far`
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() != 0) return;
    auto near = make<store_room>(rank_count() / 2);
    auto far = make<store_room>(rank_count() - 1);
    std::printf("%ld items\n", activate(add_up, near, far));
  });
}
