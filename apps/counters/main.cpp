// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 counters --via rpc
//
// Small counters that all ranks change and read: the numbers of tickets are drawn there, and noted
// here. One access there, then back to something here: for this a call is the cheapest.
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include "common/requests.hpp"

namespace {

using sojourn::global_ptr;
using sojourn::via;

class ticket_counter {
 public:
  long draw() { return ++drawn_; }
  long drawn() const { return drawn_; }

 private:
  long drawn_ = 0;
};

/// Of each rank: what was drawn from there.
class journal {
 public:
  void note(long ticket, long before) {
    ++tickets_;
    if (ticket <= before) ++wrong_;
  }
  long tickets() const { return tickets_; }
  long wrong() const { return wrong_; }

 private:
  long tickets_ = 0;
  long wrong_ = 0;
};

void draw(global_ptr<ticket_counter> counter, global_ptr<journal> mine, int tickets, via how) {
  for (int i = 0; i < tickets; ++i) {
    const long before = counter.call<&ticket_counter::drawn>(how);
    mine.call<&journal::note>(how, counter.call<&ticket_counter::draw>(how), before);
  }
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Requesters on all ranks read counters and draw tickets from them, one after another, and\n"
      "note each in a journal of their rank. Checked: tickets have higher numbers than those\n"
      "drawn before, and all were noted.",
      "counters");
  apps::requests requests(20'000);
  std::uint64_t count = 8;
  int tickets = 4;
  requests.add_to(options);
  options.add("--counters", count, "Counters, on the ranks in turn")
      .between(std::uint64_t{1}, std::uint64_t{1} << 16);
  options.add("--tickets", tickets, "Tickets that a request draws").between(1, 1 << 16);

  return apps::run_application(options, argc, argv, [&]() -> int {
    requests.open_json();
    const apps::dealt_out<ticket_counter> counters(count);
    const apps::dealt_out<journal> journals(static_cast<std::uint64_t>(sojourn::rank_count()));
    const global_ptr<journal> mine = journals[static_cast<std::uint64_t>(sojourn::rank_me())];

    const apps::figures measured =
        requests.make(1, [&](std::uint64_t, apps::random_source& random) {
          sojourn::activate(draw, counters[random.below(count)], mine, tickets, requests.how());
        });

    std::string wrong;
    if (mine.local()->wrong() > 0) wrong = "a ticket had the number of an earlier one";
    long drawn = 0;
    counters.for_mine([&](std::uint64_t, const ticket_counter& c) { drawn += c.drawn(); });
    drawn = sojourn::reduce(drawn, std::plus<>{});
    const long noted = sojourn::reduce(mine.local()->tickets(), std::plus<>{});
    const long all = static_cast<long>(requests.operations()) * tickets;
    if (drawn != all || noted != all) {
      wrong = fmt::format("of {} tickets {} were drawn and {} noted", all, drawn, noted);
    }
    return requests.report(fmt::format("{} counters, {} tickets a request", count, tickets),
                           measured, wrong, {{"counters", count}, {"tickets", tickets}});
  });
}
