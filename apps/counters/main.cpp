// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 counters --via rpc
//
// Small counters that all ranks change and read: tickets are drawn from one, another one is
// watched, and both are noted here. One access there, then back to something here: for this a call
// is the cheapest.
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <algorithm>
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

/// Of each rank: what was drawn from there, and seen.
class journal {
 public:
  void note_ticket(long) { ++tickets_; }
  void note_seen(long drawn) { highest_seen_ = std::max(highest_seen_, drawn); }
  long tickets() const { return tickets_; }
  long highest_seen() const { return highest_seen_; }

 private:
  long tickets_ = 0;
  long highest_seen_ = 0;
};

/// False when a number came that is not above the last one, or a counter went back.
bool draw(global_ptr<ticket_counter> counter, global_ptr<ticket_counter> watched,
          global_ptr<journal> mine, int tickets, via how) {
  long last_ticket = 0;
  long last_seen = 0;
  for (int i = 0; i < tickets; ++i) {
    const long ticket = counter.call<&ticket_counter::draw>(how);
    mine.call<&journal::note_ticket>(how, ticket);
    const long seen = watched.call<&ticket_counter::drawn>(how);
    mine.call<&journal::note_seen>(how, seen);
    if (ticket <= last_ticket || seen < last_seen) return false;
    last_ticket = ticket;
    last_seen = seen;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Requesters on all ranks draw tickets from one counter and watch another one, in turns, and\n"
      "note both in a journal of their rank. Checked: numbers rise, no counter goes back, and all\n"
      "tickets were drawn and noted.",
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

    std::string wrong;
    const apps::figures measured =
        requests.make(1, [&](std::uint64_t, apps::random_source& random) {
          const global_ptr<ticket_counter> counter = counters[random.below(count)];
          const global_ptr<ticket_counter> watched = counters[random.below(count)];
          if (!sojourn::activate(draw, counter, watched, mine, tickets, requests.how())) {
            wrong = "a counter went back";
          }
        });

    if (mine.call<&journal::highest_seen>() > static_cast<long>(requests.operations()) * tickets) {
      wrong = "a counter was seen with more tickets than were drawn";
    }
    long drawn = 0;
    counters.for_mine([&](std::uint64_t, global_ptr<ticket_counter> c) {
      drawn += c.call<&ticket_counter::drawn>();
    });
    drawn = sojourn::reduce(drawn, std::plus<>{});
    const long noted = sojourn::reduce(mine.call<&journal::tickets>(), std::plus<>{});
    const long all = static_cast<long>(requests.operations()) * tickets;
    if (drawn != all || noted != all) {
      wrong = fmt::format("of {} tickets {} were drawn and {} noted", all, drawn, noted);
    }
    return requests.report(fmt::format("{} counters, {} tickets a request", count, tickets),
                           measured, wrong, {{"counters", count}, {"tickets", tickets}});
  });
}
