// SPDX-License-Identifier: Apache-2.0
// Where via::migrate is an rpc: docs/migration.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <stdexcept>

using namespace sojourn;

struct object {
  long value = 7;
  long get() const { return value; }
};

long moves(global_ptr<object> o) { return o.call<&object::get>(via::migrate); }

long holds_a_stay(global_ptr<object> o) {
  stay here;
  return o.call<&object::get>(via::migrate);
}

long inside_a_finish(global_ptr<object> o) {
  long value = 0;
  finish([&] { value = o.call<&object::get>(via::migrate); });
  return value;
}

long in_a_catch_block(global_ptr<object> o) {
  try {
    throw std::runtime_error("first try");
  } catch (const std::runtime_error&) {
    return o.call<&object::get>(via::migrate);
  }
}

long captures(global_ptr<object> o) {
  long sum = 0;
  activate([&sum, o] { sum += o.call<&object::get>(via::migrate); });
  return sum;
}

template <class Body>
void show(const char* what, Body body) {
  counters before = counters_now();
  long value = body();
  counters spent = counters_now() - before;
  std::printf("%-20s %ld: %lu migrations, %lu refused, %lu requests\n", what, value,
              spent.migrations, spent.migrations_refused, spent.requests_sent);
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() != 0) return;
    auto o = make<object>(rank_count() - 1);
    show("an activation", [o] { return activate(moves, o); });
    show("the main fiber", [o] { return moves(o); });
    show("a stay", [o] { return activate(holds_a_stay, o); });
    show("an open finish", [o] { return activate(inside_a_finish, o); });
    show("a catch block", [o] { return activate(in_a_catch_block, o); });
    show("a capturing lambda", [o] { return captures(o); });
    destroy(o);
  });
}
