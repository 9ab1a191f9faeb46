// SPDX-License-Identifier: Apache-2.0
// Objects on all ranks, and a table in shared memory: docs/shared_memory.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>

using namespace sojourn;

class node;
struct step {
  int kind;
  global_ptr<node> next;
};
class node {
 public:
  node(int kind, global_ptr<node> next) : kind_(kind), next_(next) {}
  step visit() const { return {kind_, next_}; }

 private:
  int kind_;
  global_ptr<node> next_;
};

long walk(global_ptr<node> at, shared::pointer<const long> weights) {
  long sum = 0;
  while (at) {
    // Moves there, or calls there; the table is read wherever this runs.
    const step s = at.call<&node::visit>(via::migrate);
    sum += weights[s.kind];
    at = s.next;
  }
  return sum;
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    constexpr int nodes = 100;
    if (rank_me() == 0) {
      const shared::pointer<long> weights = shared::alloc<long>(nodes);
      global_ptr<node> first;
      for (int k = 0; k < nodes; ++k) {
        weights[k] = k;  // the function sees it wherever it is
        first = make<node>(k % rank_count(), k, first);
      }
      std::printf("%ld\n", activate(walk, first, shared::pointer<const long>(weights)));
    }
    barrier();
  });
}
