// SPDX-License-Identifier: Apache-2.0
// Which of three nested activations an access moves: docs/migration.md.
#include <sojourn/sojourn.hpp>

#include <array>
#include <cstdio>

using namespace sojourn;

struct object {
  int touched = 0;
  void touch() { ++touched; }
};

using ranks = std::array<rank_t, 3>;  // where outer, middle and inner find themselves afterwards

ranks inner(global_ptr<object> o, via how) {
  o.call<&object::touch>(how);
  return {0, 0, rank_me()};
}
ranks middle(global_ptr<object> o, via how) {
  ranks r = activate(inner, o, how);
  r[1] = rank_me();
  return r;
}
ranks outer(global_ptr<object> o, via how) {
  ranks r = activate(middle, o, how);
  r[0] = rank_me();
  return r;
}

// All up to and including this one, whatever lies between.
ranks outer_with_handle(global_ptr<object> o) {
  activation mine = this_activation();
  return outer(o, via::migrate.through(mine));
}

void show(const char* how, ranks r) {
  std::printf("%-24s outer on rank %d, middle on %d, inner on %d\n", how, r[0], r[1], r[2]);
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() != 0) return;
    auto o = make<object>(rank_count() - 1);
    show("rpc", activate(outer, o, via::rpc));
    show("migrate", activate(outer, o, via::migrate));
    show("migrate.activations(2)", activate(outer, o, via::migrate.activations(2)));
    show("migrate.all()", activate(outer, o, via::migrate.all()));
    show("migrate.through(mine)", activate(outer_with_handle, o));
    destroy(o);
  });
}
