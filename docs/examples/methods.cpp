// SPDX-License-Identifier: Apache-2.0
// Four ways to run a method.
#include <cstdio>
#include <sojourn/sojourn.hpp>

using namespace sojourn;

struct gauge {
  long level = 0;
  long read() const { return level; }
  /// Waits for another object: it gets a stack of its own then, and not before.
  long compare(global_ptr<gauge> other) { return level - other.call<&gauge::read>(); }
};

/// One method at a time, also while one waits.
struct account : monitor {
  long cents = 100;
  long take(long wanted, global_ptr<gauge> limit) {
    const long had = cents;
    if (had - wanted < limit.call<&gauge::read>()) return 0;  // others wait for their turn
    cents = had - wanted;
    return wanted;
  }
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() != 0) return;
    auto near = make<gauge>(0);
    auto far = make<gauge>(rank_count() - 1);
    auto a = make<account>(rank_count() - 1);
    std::printf("level %ld\n", far.call<&gauge::read>());            // simple
    auto level = far.async<&gauge::read>();                          // this fiber goes on …
    std::printf("apart by %ld\n", far.call<&gauge::compare>(near));  // threaded at both ends
    std::printf("level %ld\n", level.get());                         // … and waits here
    auto first = a.async<&account::take>(60L, near);                 // atomic: the second one
    auto second = a.async<&account::take>(60L, near);                // waits for the first
    std::printf("taken %ld\n", first.get() + second.get());
    destroy(a), destroy(far), destroy(near);
  });
}
