// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 hot_table --via cache
//
// A hash table that is read nearly always, some keys far more often than others: prices, of which
// an order looks up four. A copy of a bucket answers without a message until one of its prices
// changes.
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/requests.hpp"
#include "common/zipf.hpp"

namespace {

using sojourn::global_ptr;
using sojourn::via;

constexpr std::size_t slots = 8;

/// The prices of some items: of the item i, that in slot i mod `slots`.
class bucket {
 public:
  long price(std::uint64_t item) const { return cents_[item % slots]; }
  void raise(std::uint64_t item, long cents) { cents_[item % slots] += cents; }

 private:
  std::array<long, slots> cents_{};
};

struct position {
  global_ptr<bucket> where;
  std::uint64_t item = 0;
};
using order = std::array<position, 4>;
using prices = std::array<long, 4>;

prices look_up(const order& what, via how) {
  prices found{};
  for (std::size_t i = 0; i < what.size(); ++i) {
    found[i] = what[i].where.call<&bucket::price>(how, what[i].item);
  }
  return found;
}

void raise(const position& what, via how) { what.where.call<&bucket::raise>(how, what.item, 1L); }

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Orders look up the prices of four items each in a hash table on all ranks; some percent of\n"
      "the requests raise a price instead. Popular items are those of Zipf's law. Checked: no\n"
      "rank sees a price go back, and at the end each has risen as often as it was raised.",
      "hot_table");
  apps::requests requests(20'000);
  std::uint64_t items = 4096;
  double writes = 2;
  requests.add_to(options);
  options.add("--items", items, "Items in the table")
      .between(std::uint64_t{1}, std::uint64_t{1} << 24);
  options.add("--writes", writes, "Percent of the requests that raise a price").between(0.0, 100.0);

  return apps::run_application(options, argc, argv, [&]() -> int {
    requests.open_json();
    const apps::dealt_out<bucket> table((items + slots - 1) / slots);
    const apps::zipf popularity(items);
    const auto some_item = [&](apps::random_source& random) -> position {
      const std::uint64_t item = popularity.draw_scrambled(random);
      return {table[item / slots], item};
    };

    std::vector<long> seen(items);  // By this rank, of each item: the last price.
    std::uint64_t raised = 0;
    std::string wrong;
    const apps::figures measured =
        requests.make(1, [&](std::uint64_t, apps::random_source& random) {
          if (random.fraction() * 100 < writes) {
            sojourn::activate(raise, some_item(random), requests.how());
            ++raised;
            return;
          }
          order what;
          for (position& p : what) p = some_item(random);
          std::array<long, 4> before{};
          for (std::size_t i = 0; i < what.size(); ++i) before[i] = seen[what[i].item];
          const prices found = sojourn::activate(look_up, what, requests.how());
          for (std::size_t i = 0; i < what.size(); ++i) {
            if (found[i] < before[i])
              wrong = fmt::format("the price of {} went back", what[i].item);
            seen[what[i].item] = std::max(seen[what[i].item], found[i]);
          }
        });

    long sum = 0;
    table.for_mine([&](std::uint64_t, global_ptr<bucket> b) {
      for (std::uint64_t slot = 0; slot < slots; ++slot) sum += b.call<&bucket::price>(slot);
    });
    sum = sojourn::reduce(sum, std::plus<>{});
    raised = sojourn::reduce(raised, std::plus<>{});
    if (sum != static_cast<long>(raised)) {
      wrong = fmt::format("the prices rose by {}, and were raised {} times", sum, raised);
    }
    return requests.report(fmt::format("hot table of {} items, {}% writes", items, writes),
                           measured, wrong, {{"writes_percent", writes}, {"items", items}});
  });
}
