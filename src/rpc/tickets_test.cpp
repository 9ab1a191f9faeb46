// SPDX-License-Identifier: Apache-2.0
#include "rpc/tickets.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "rpc/rank_test.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/rpc.hpp"
#include "sojourn/waiting/clock.hpp"

namespace {

using namespace sojourn;
using namespace sojourn::detail;

/// Too long to lie in a ticket.
using long_value = std::array<int, 100>;
long_value counted() {
  long_value v;
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<int>(i);
  return v;
}

template <class T>
T take(ticket_id id) {
  T value{};
  ticket_take(id, &value, sizeof value);
  return value;
}
void send(ticket_id id, const auto& value) { send_result(id, &value, sizeof value); }
/// A type that no other rank knows.
struct not_travelling {
  int* object;
};

/// True when taking `id` throws E.
template <class E>
bool throws(ticket_id id) {
  try {
    ticket_take(id, nullptr, 0);
  } catch (const E&) {
    return true;
  }
  return false;
}

void results_are_taken() {
  in_a_fiber([] {
    const ticket_id here = ticket_open();
    send(here, 7L);
    CLAIM(take<long>(here) == 7);
    CLAIM(!ticket_is_open(here));
    const ticket_id awaited = ticket_open();
    later([awaited] { send(awaited, 8L); });
    CLAIM(take<long>(awaited) == 8);
    const ticket_id word = ticket_open();
    later([word] { send(word, std::uint16_t{9}); });
    CLAIM(ticket_take_word(word, sizeof(std::uint16_t)) == 9);
    const ticket_id is_long = ticket_open();
    later([is_long] { send(is_long, counted()); });
    CLAIM(take<long_value>(is_long) == counted());
    CLAIM(tickets_open() == 0);
  });
}
TEST(tickets, a_result_is_taken_whether_it_is_here_or_waited_for) {
  EXPECT_CLAIMS(results_are_taken);
}

void the_first_result_counts() {
  in_a_fiber([] {
    const ticket_id id = ticket_open();
    send(id, 1);
    send(id, 2);
    CLAIM(take<int>(id) == 1);
  });
}
TEST(tickets, the_first_result_counts) { EXPECT_CLAIMS(the_first_result_counts); }

void exceptions_stay_what_they_are() {
  in_a_fiber([] {
    int object = 0;
    const ticket_id id = ticket_open();
    later([&] { send_exception(id, std::make_exception_ptr(not_travelling{&object})); });
    int* caught = nullptr;
    try {
      ticket_take(id, nullptr, 0);
    } catch (const not_travelling& e) {
      caught = e.object;
    }
    CLAIM(caught == &object);
    CLAIM(tickets_open() == 0);
  });
}
TEST(tickets, an_exception_of_this_rank_comes_as_itself) {
  EXPECT_CLAIMS(exceptions_stay_what_they_are);
}

void results_of_another_length_are_refused() {
  in_a_fiber([] {
    for (const std::size_t taken_bytes : {std::size_t{4}, sizeof(long_value)}) {
      const ticket_id id = ticket_open();
      send(id, 1L);
      const std::uint64_t refused = counts.messages_refused;
      long_value into;
      bool is_refused = false;
      try {
        ticket_take(id, &into, taken_bytes);
      } catch (const malformed_message&) {
        is_refused = true;
      }
      CLAIM(is_refused && counts.messages_refused == refused + 1);
      CLAIM(!ticket_is_open(id));
    }
  });
}
TEST(tickets, a_result_of_another_length_is_refused_and_counted) {
  EXPECT_CLAIMS(results_of_another_length_are_refused);
}

void dropped_tickets_are_freed() {
  in_a_fiber([] {
    const ticket_id early = ticket_open();
    ticket_drop(early);
    CLAIM(ticket_is_open(early));
    send(early, 1);
    CLAIM(!ticket_is_open(early));
    const ticket_id late = ticket_open();
    send(late, counted());
    ticket_drop(late);
    CLAIM(!ticket_is_open(late));
    const ticket_id failed = ticket_open();
    ticket_drop(failed);
    send_exception(failed, std::make_exception_ptr(1));
    CLAIM(!ticket_is_open(failed));
  });
}
TEST(tickets, a_dropped_ticket_is_freed_when_its_result_is_here) {
  EXPECT_CLAIMS(dropped_tickets_are_freed);
}

void those_who_ask_are_told() {
  in_a_fiber([] {
    int told = 0;
    const auto tell = [](void* context) { ++*static_cast<int*>(context); };
    const ticket_id later_here = ticket_open();
    ticket_on_ready(later_here, tell, &told);
    CLAIM(told == 0);
    send(later_here, 1);
    CLAIM(told == 1);
    ticket_id here = ticket_open();
    CLAIM(!ticket_ready(here));
    send(here, 1);
    CLAIM(ticket_ready(here));
    ticket_on_ready(here, tell, &told);
    CLAIM(told == 2);
  });
}
TEST(tickets, whoever_asks_is_told_when_the_result_comes_or_at_once) {
  EXPECT_CLAIMS(those_who_ask_are_told);
}

void results_are_forwarded() {
  in_a_fiber([] {
    constexpr ticket_id elsewhere = ticket_id{1} << 48 | 5;
    const ticket_id id = ticket_open();
    CLAIM(forwarded_to(*find_ticket(id)) == 0);
    forward_result(id, elsewhere);
    CLAIM(forwarded_to(*find_ticket(id)) == elsewhere);
    const std::uint64_t sent = traffic_so_far().sent;
    send(id, 1);
    CLAIM(traffic_so_far().sent == sent + 1);
    CLAIM(!ticket_is_open(id));
    // A fiber that asks away from the ticket's home gets one of its own rank instead.
    ticket_id adopted = elsewhere;
    CLAIM(!ticket_ready(adopted));
    CLAIM(home_of(adopted) == 0 && find_ticket(adopted)->asked == 1);
    CLAIM(traffic_so_far().sent == sent + 2);
  });
}
TEST(tickets, a_result_is_sent_once_to_whoever_asked_for_it_elsewhere) {
  EXPECT_CLAIMS(results_are_forwarded);
}

void answers_of_a_lost_rank_fail() {
  in_a_fiber([] {
    const ticket_id answer = open_answer(1);
    const ticket_id thread = ticket_open();
    find_ticket(thread)->thread_at = 1;
    const ticket_id dropped = open_answer(1);
    ticket_drop(dropped);
    const ticket_id of_this_rank = ticket_open();
    CLAIM(unanswered_by(1) == 2);
    fail_answers_of(1);
    CLAIM(unanswered_by(1) == 1);
    CLAIM(throws<rank_lost>(answer));
    CLAIM(throws<rank_lost>(thread));
    CLAIM(ticket_is_open(dropped));
    CLAIM(!ticket_ready(const_cast<ticket_id&>(of_this_rank)));
  });
}
TEST(tickets, what_waits_for_an_answer_of_a_lost_rank_or_a_thread_there_fails) {
  EXPECT_CLAIMS(answers_of_a_lost_rank_fail);
}

/// A result that lands is written to its place while the fiber waits, so that the ticket need not
/// hold it.
void results_land() {
  in_a_fiber([] {
    static long_value place;
    const ticket_id id = ticket_open();
    land_in_place(id, &place, sizeof place);
    later([id] { send(id, counted()); });
    wait_landed(id, sizeof place);
    CLAIM(place == counted());
    CLAIM(!ticket_is_open(id));

    const ticket_id of_other_length = ticket_open();
    land_in_place(of_other_length, &place, sizeof place);
    later([=] { send(of_other_length, 1); });
    bool is_refused = false;
    try {
      wait_landed(of_other_length, sizeof place);
    } catch (const malformed_message&) {
      is_refused = true;
    }
    CLAIM(is_refused);

    const ticket_id failed = ticket_open();
    land_in_place(failed, &place, sizeof place);
    later([=] { send_exception(failed, std::make_exception_ptr(1)); });
    settle_landing(failed);
    CLAIM(place == counted());
    CLAIM(tickets_open() == 0);
  });
}
TEST(tickets, a_result_lands_in_its_place_and_whatever_else_comes_does_not) {
  EXPECT_CLAIMS(results_land);
}

struct several {
  std::array<ticket_id, 3> ids{ticket_open(), ticket_open(), ticket_open()};
  ticket_range range{&ids, ids.size(), [](void* of, std::size_t i) {
                       return &(*static_cast<std::array<ticket_id, 3>*>(of))[i];
                     }};
};

void one_wait_for_all() {
  in_a_fiber([] {
    several wanted;
    int sent = 0;
    for (const std::size_t i : {2U, 0U, 1U}) {
      later([&, i] {
        ++sent;
        send(wanted.ids[i], static_cast<int>(i));
      });
    }
    tickets_wait(wanted.range);
    CLAIM(sent == 3);
    for (int i = 0; i < 3; ++i) CLAIM(take<int>(wanted.ids[static_cast<std::size_t>(i)]) == i);
    CLAIM(tickets_open() == 0);
  });
}
TEST(tickets, one_wait_for_several_ends_when_all_are_here) { EXPECT_CLAIMS(one_wait_for_all); }

void one_wait_for_any() {
  in_a_fiber([] {
    constexpr std::uint64_t for_ever = ~std::uint64_t{0};
    several wanted;
    CLAIM(first_ticket_ready(wanted.range) == 3);
    later([&] { send(wanted.ids[1], 1); });
    CLAIM(tickets_wait_any(wanted.range, for_ever) == 1);
    CLAIM(first_ticket_ready(wanted.range) == 1);
    // Nobody takes or watches the others any more.
    CLAIM(take<int>(wanted.ids[1]) == 1);
    later([&] { send(wanted.ids[0], 0); });
    CLAIM(take<int>(wanted.ids[0]) == 0);
    CLAIM(tickets_open() == 1);
    ticket_id last = wanted.ids[2];
    const ticket_range only{&last, 1,
                            [](void* of, std::size_t) { return static_cast<ticket_id*>(of); }};
    CLAIM(tickets_wait_any(only, now_ns() + 1000) == 1);
    CLAIM(tickets_open() == 1);
  });
}
TEST(tickets, one_wait_for_any_ends_with_the_first_or_with_the_time) {
  EXPECT_CLAIMS(one_wait_for_any);
}

}  // namespace
