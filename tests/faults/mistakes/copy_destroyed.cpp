// SPDX-License-Identifier: Apache-2.0
// A copy of an object that was destroyed; and one of a part of an object, which is no mistake.
#include <array>
#include <cstdio>
#include <cstring>
#include <span>

#include <sojourn/sojourn.hpp>
using namespace sojourn;

struct pair {
  int first = 1;
  int second = 2;
};

[[gnu::noinline]] void end_of(global_ptr<long> p) { destroy_array(p, 2); }

[[gnu::noinline]] long read_bad(global_ptr<long> p) {
  end_of(p);
  return load(p);
}
[[gnu::noinline]] long read_good(global_ptr<long> p) {
  long value = load(p);
  std::array<long, 2> both{};
  get(p, std::span<long>(both));
  store(p + 1, value);
  // Any object as bytes, and its first member.
  auto two = make<pair>(p.where());
  std::array<std::byte, sizeof(pair)> bytes{};
  get(global_ptr<std::byte>::at(two.address()), std::span<std::byte>(bytes));
  value += load(global_ptr<int>::at(two.address()));
  get(p, std::span<long>());
  destroy(two);
  end_of(p);
  return value;
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto p = make_array<long>(rank_count() - 1, 2);
    std::printf("%ld\n", bad ? read_bad(p) : read_good(p));
  });
}
