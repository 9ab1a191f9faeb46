// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 hash_join --via cache
//
// A hash join: the rows of one table are entered into buckets on all ranks, and those of the other,
// of which some keys have far more than others, are looked up there.
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/requests.hpp"
#include "common/zipf.hpp"

namespace {

using sojourn::global_ptr;
using sojourn::via;

/// Customers, by their number.
struct customer {
  std::uint64_t number;
  std::uint64_t discount;
};

/// Full with eight; the ninth goes into another one behind it.
class bucket {
 public:
  struct found {
    std::optional<customer> row;
    global_ptr<bucket> next;  ///< If it is not here: where to look further.
  };

  /// False when it is full.
  bool enter(customer row) {
    if (size_ == rows_.size()) return false;
    rows_[size_++] = row;
    return true;
  }
  found find(std::uint64_t number) const {
    for (std::size_t i = 0; i < size_; ++i) {
      if (rows_[i].number == number) return {rows_[i], nullptr};
    }
    return {std::nullopt, next_};
  }
  /// The bucket behind this one, which is made where this one is.
  global_ptr<bucket> behind() {
    if (!next_) next_ = sojourn::make<bucket>(sojourn::rank_me());
    return next_;
  }
  global_ptr<bucket> next() const { return next_; }

 private:
  std::size_t size_ = 0;
  std::array<customer, 8> rows_{};
  global_ptr<bucket> next_;
};

void enter(global_ptr<bucket> at, customer row, via how) {
  while (!at.call<&bucket::enter>(how, row)) at = at.call<&bucket::behind>(how);
}

/// The discount of the order's customer; 0 where there is none.
std::uint64_t probe(global_ptr<bucket> at, std::uint64_t number, via how) {
  while (at) {
    const bucket::found found = at.call<&bucket::find>(how, number);
    if (found.row) return found.row->discount;
    at = found.next;
  }
  return 0;
}

/// Every third number has no customer.
std::uint64_t discount_of(std::uint64_t number) {
  return number % 3 == 0 ? 0 : 1 + apps::mix64(number) % 30;
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Joins orders with customers: the customers are entered into a hash table on all ranks, and\n"
      "each order looks its own up. Some customers have far more orders than others. Checked: the\n"
      "sum of what was joined, and that each order found its customer.",
      "hash_join");
  apps::requests requests(20'000);
  std::uint64_t customers = 8192;
  requests.add_to(options);
  options.add("--customers", customers, "Numbers of customers")
      .between(std::uint64_t{1}, std::uint64_t{1} << 24);

  return apps::run_application(options, argc, argv, [&]() -> int {
    requests.open_json();
    const apps::dealt_out<bucket> table((customers + 3) / 4);
    const auto bucket_of = [&](std::uint64_t number) {
      return table[apps::mix64(number) % table.size()];
    };
    const apps::figures building =
        requests.make_some(0, customers, 1, [&](std::uint64_t number, apps::random_source&) {
          const customer row{number, discount_of(number)};
          if (row.discount != 0) sojourn::activate(enter, bucket_of(number), row, requests.how());
        });

    const apps::zipf orders(customers);
    std::string wrong;
    const apps::figures probing = requests.make(2, [&](std::uint64_t, apps::random_source& random) {
      const std::uint64_t number = orders.draw_scrambled(random);
      const std::uint64_t discount =
          sojourn::activate(probe, bucket_of(number), number, requests.how());
      if (discount != discount_of(number)) {
        wrong = fmt::format("an order of customer {} got a discount of {}", number, discount);
      }
    });

    table.for_mine([](std::uint64_t, global_ptr<bucket> first) {
      for (global_ptr<bucket> b = first.call<&bucket::next>(); b;) {
        const global_ptr<bucket> behind = b.call<&bucket::next>();
        sojourn::destroy(b);
        b = behind;
      }
    });
    return requests.report(
        fmt::format("hash join with {} customers", customers), building + probing, wrong,
        {{"building", apps::to_json(building)}, {"probing", apps::to_json(probing)}});
  });
}
