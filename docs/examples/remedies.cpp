// SPDX-License-Identifier: Apache-2.0
// Five ways to have data beside a frame that migrates: docs/migration.md.
#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <vector>

using namespace sojourn;

struct scale {
  long factor = 3;
  long by(long x) const { return x * factor; }
};

// In place: an array is part of the frame and goes along.
long in_the_frame(global_ptr<scale> s) {
  std::array<long, 100> values;
  std::iota(values.begin(), values.end(), 1L);
  long sum = 0;
  for (long v : values) sum += s.call<&scale::by>(via::migrate, v);
  return sum;
}

// In the global heap: its address means the same on every rank.
long in_the_global_heap(global_ptr<scale> s) {
  auto values = make_array<long>(rank_me(), 100);
  for (int i = 0; i < 100; ++i) store(values + i, i + 1);
  long sum = 0;
  for (int i = 0; i < 100; ++i) sum += s.call<&scale::by>(via::migrate, load(values + i));
  destroy_array(values, 100);
  return sum;
}

// Another mechanism at this access: the frame stays with its vector.
long by_rpc(global_ptr<scale> s) {
  std::vector<long> values(100);
  std::iota(values.begin(), values.end(), 1L);
  long sum = 0;
  for (long v : values) sum += s.call<&scale::by>(via::rpc, v);
  return sum;
}

// An activation of its own: only the inner frame moves, the vector's stays.
long in_an_older_frame(global_ptr<scale> s) {
  std::vector<long> values(100);
  std::iota(values.begin(), values.end(), 1L);
  long sum = 0;
  for (long v : values) {
    sum += activate([](global_ptr<scale> p, long x) { return p.call<&scale::by>(via::migrate, x); },
                    s, v);
  }
  return sum;
}

// Made by a function that has returned: nothing in this frame points anywhere.
[[gnu::noinline]] std::array<long, 100> first_hundred() {
  std::vector<long> made(100);
  std::iota(made.begin(), made.end(), 1L);
  std::array<long, 100> values;
  std::copy(made.begin(), made.end(), values.begin());
  return values;
}
long made_elsewhere(global_ptr<scale> s) {
  std::array<long, 100> values = first_hundred();
  long sum = 0;
  for (long v : values) sum += s.call<&scale::by>(via::migrate, v);
  return sum;
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() != 0) return;
    auto s = make<scale>(rank_count() - 1);
    std::printf("%ld %ld %ld %ld %ld\n", activate(in_the_frame, s), activate(in_the_global_heap, s),
                activate(by_rpc, s), activate(in_an_older_frame, s), activate(made_elsewhere, s));
    destroy(s);
  });
}
