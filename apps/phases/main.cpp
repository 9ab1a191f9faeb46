// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 phases --via cache
//
// The best word changes half-way: boards are first read by all and changed by few, and then changed
// all the time. The accesses are on the same lines in both halves.
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "common/requests.hpp"

namespace {

using sojourn::global_ptr;
using sojourn::via;

class board {
 public:
  static constexpr int cells = 64;

  long cell(int i) const { return cells_[static_cast<std::size_t>(i)]; }
  void add(int i, long more) { cells_[static_cast<std::size_t>(i)] += more; }

 private:
  std::array<long, cells> cells_{};
};

/// Reads some cells one after another, and adds to each `writes`-th of a thousand.
struct visit {
  int first = 0;
  int steps = 0;
  std::uint64_t writes = 0;
  std::uint64_t seed = 0;
};
/// Returns how often it added.
long play(global_ptr<board> at, visit what, via how) {
  apps::random_source random(what.seed);
  long added = 0;
  for (int i = 0; i < what.steps; ++i) {
    const int cell = (what.first + i) % board::cells;
    if (random.below(1000) < what.writes) {
      at.call<&board::add>(how, cell, 1L);
      ++added;
    } else if (at.call<&board::cell>(how, cell) < 0) {
      return -1;
    }
  }
  return added;
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Players on all ranks read cells of boards one after another, and change some. In the first\n"
      "half of the requests they change few, in the second half most. Checked: the cells add up\n"
      "to what was added.",
      "phases");
  apps::requests requests(8'000);
  std::uint64_t boards = 64;
  int steps = 16;
  requests.add_to(options);
  options.add("--boards", boards, "Boards, on the ranks in turn")
      .between(std::uint64_t{1}, std::uint64_t{1} << 16);
  options.add("--steps", steps, "Cells that a request looks at").between(1, 1 << 16);

  return apps::run_application(options, argc, argv, [&]() -> int {
    constexpr std::uint64_t few = 1;  // of a thousand accesses
    constexpr std::uint64_t most = 900;
    requests.open_json();
    const apps::dealt_out<board> all(boards);
    long added = 0;
    std::string wrong;
    const auto half = [&](std::uint64_t first, std::uint64_t end, std::uint64_t writes) {
      return requests.make_some(first, end, 1, [&](std::uint64_t, apps::random_source& random) {
        const global_ptr<board> at = all[random.below(boards)];
        const visit what{static_cast<int>(random.below(board::cells)), steps, writes,
                         random.next()};
        const long times = sojourn::activate(play, at, what, requests.how());
        if (times < 0) wrong = "a cell was less than 0";
        added += times;
      });
    };
    const std::uint64_t middle = requests.operations() / 2;
    const apps::figures reading = half(0, middle, few);
    const apps::figures writing = half(middle, requests.operations(), most);

    long sum = 0;
    all.for_mine([&](std::uint64_t, global_ptr<board> b) {
      for (int i = 0; i < board::cells; ++i) sum += b.call<&board::cell>(i);
    });
    sum = sojourn::reduce(sum, std::plus<>{});
    added = sojourn::reduce(added, std::plus<>{});
    if (sum != added) wrong = fmt::format("{} was added, and the cells have {}", added, sum);
    return requests.report(
        fmt::format("{} boards, {} steps a request", boards, steps), reading + writing, wrong,
        {{"reading", apps::to_json(reading)}, {"writing", apps::to_json(writing)}});
  });
}
