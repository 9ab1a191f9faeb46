// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 chains --via migrate
//
// Long runs on one object before the next: a clerk goes through a chain of warehouses and books
// many entries in each. A clerk that goes there books them by plain calls.
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <array>
#include <cstdint>
#include <string>

#include "common/requests.hpp"

namespace {

using sojourn::global_ptr;
using sojourn::via;

class warehouse {
 public:
  void follow(global_ptr<warehouse> next) { next_ = next; }
  global_ptr<warehouse> next() const { return next_; }
  /// What is left there on this shelf once so many pieces are put there.
  long book(int shelf, long pieces) {
    return pieces_[static_cast<std::size_t>(shelf) % shelves] += pieces;
  }
  long pieces() const {
    long all = 0;
    for (long on_shelf : pieces_) all += on_shelf;
    return all;
  }

 private:
  static constexpr std::size_t shelves = 32;
  global_ptr<warehouse> next_;
  std::array<long, shelves> pieces_{};
};

/// Goes through the whole chain; returns how many entries were booked.
long book_all(global_ptr<warehouse> at, int run, via how) {
  long booked = 0;
  while (at) {
    for (int shelf = 0; shelf < run; ++shelf) {
      if (at.call<&warehouse::book>(how, shelf, 1L) > 0) ++booked;
    }
    at = at.call<&warehouse::next>(how);
  }
  return booked;
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Clerks go through chains of warehouses, which lie on the ranks in turn, and book many\n"
      "entries in each before they go on to the next. Checked: each entry was booked once.",
      "chains");
  apps::requests requests(1'000);
  std::uint64_t chains = 32;
  std::uint64_t length = 8;
  int run = 32;
  requests.add_to(options);
  options.add("--chains", chains, "Chains").between(std::uint64_t{1}, std::uint64_t{1} << 16);
  options.add("--length", length, "Warehouses in a chain")
      .between(std::uint64_t{1}, std::uint64_t{1} << 10);
  options.add("--run", run, "Entries booked in each warehouse").between(1, 1 << 16);

  return apps::run_application(options, argc, argv, [&]() -> int {
    requests.open_json();
    // Warehouse i of a chain is followed by warehouse i + 1, on the next rank.
    const apps::dealt_out<warehouse> all(chains * length);
    all.for_mine([&](std::uint64_t i, global_ptr<warehouse> w) {
      if ((i + 1) % length != 0) w.call<&warehouse::follow>(all[i + 1]);
    });
    sojourn::barrier();

    const long each = static_cast<long>(length) * run;
    std::string wrong;
    const apps::figures measured =
        requests.make(1, [&](std::uint64_t, apps::random_source& random) {
          const global_ptr<warehouse> first = all[random.below(chains) * length];
          const long booked = sojourn::activate(book_all, first, run, requests.how());
          if (booked != each) wrong = fmt::format("a clerk booked {} of {} entries", booked, each);
        });

    long pieces = 0;
    all.for_mine(
        [&](std::uint64_t, global_ptr<warehouse> w) { pieces += w.call<&warehouse::pieces>(); });
    pieces = sojourn::reduce(pieces, std::plus<>{});
    if (pieces != each * static_cast<long>(requests.operations())) {
      wrong = fmt::format("{} pieces are in the warehouses", pieces);
    }
    return requests.report(
        fmt::format("{} chains of {} warehouses, {} entries in each", chains, length, run),
        measured, wrong, {{"length", length}, {"run", run}});
  });
}
