// SPDX-License-Identifier: Apache-2.0
// Distributed containers: names of what they do, keys that lie together, work that is taken over.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <sojourn/containers.hpp>
#include <sojourn/sojourn.hpp>
#include <string>

using namespace sojourn;

void stock() {
  const auto stock = dist_map<std::string, long>::make();  // on all ranks together
  finish_all([&] {
    // One-way: add to the value at the rank of the key, which begins at 0.
    stock.ff_update("apples", [](long& n, long more) { n += more; }, 10L);
    if (rank_me() == 0) stock.ff_insert("pears", 5);
  });
  if (rank_me() == 0) {
    // These wait for the rank of the key.
    const std::optional<long> pears = stock.find("pears");
    const long left = stock.visit("apples", [](long& n) { return n -= 3; });
    std::printf("%ld pears, %ld apples\n", pears.value_or(0), left);
  }
  // Collective.
  const std::size_t kinds = stock.size_all();
  // This rank's part.
  long mine = 0;
  for (const auto& [name, n] : stock) mine += n;
  const long all = reduce(mine, std::plus<>());
  if (rank_me() == 0) std::printf("%zu kinds, %ld pieces\n", kinds, all);
  stock.destroy_all();
}

// Stations of a line follow each other, so a line lies on one rank.
struct station {
  int line;
  int number;
  friend bool operator==(const station&, const station&) = default;
};
struct hash_of_station {
  std::size_t operator()(station s) const {
    return static_cast<std::size_t>(s.line) * 1000 + static_cast<std::size_t>(s.number);
  }
};
struct by_line {
  int operator()(station s) const { return s.line; }
};
struct stop {
  station next;
  int minutes;
};
using timetable = dist_map<station, stop, hash_of_station, by_line>;

int ride(timetable all, station from, int stops, via how) {
  int minutes = 0;
  for (int i = 0; i < stops; ++i) {
    const std::optional<stop> here = all.find(how, from);
    if (!here) break;
    minutes += here->minutes;
    from = here->next;
  }
  return minutes;
}

void rides() {
  const auto all = timetable::make();
  finish_all([&] {
    // At the end of a line one changes to the next one.
    for (int line = rank_me(); line < 8; line += rank_count())
      for (int n = 0; n < 20; ++n)
        all.ff_insert({line, n},
                      {n < 19 ? station{line, n + 1} : station{(line + 1) % 8, 0}, 1 + n % 3});
  });
  if (rank_me() == 0)
    std::printf("%d minutes\n", activate(ride, all, station{0, 0}, 100, via::migrate));
  barrier();
  all.destroy_all();
}

void chores() {
  const auto work = dist_bag<int>::make();
  if (rank_me() == 0)
    for (int i = 1; i <= 1000; ++i) work.push_here(i);
  barrier();
  long sum = 0;
  while (const std::optional<int> item = work.pop()) {  // here, or half of what another rank has
    sum += *item;
    yield();
  }
  const long all = reduce(sum, std::plus<>());
  if (rank_me() == 0) std::printf("the sum of all items is %ld\n", all);
  work.destroy_all();
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    stock();
    rides();
    chores();
  });
}
