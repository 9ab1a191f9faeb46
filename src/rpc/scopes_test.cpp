// SPDX-License-Identifier: Apache-2.0
#include "rpc/scopes.hpp"

#include "fiber/hooks.hpp"
#include "rpc/rank_test.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/finish.hpp"

namespace {

using namespace sojourn;
using namespace sojourn::detail;

/// Runs `body` in a fiber of a rank that knows scopes.
template <class Body>
void with_scopes(Body body) {
  attach_scopes();
  in_a_fiber(body);
}

void waits_for_messages() {
  with_scopes([] {
    CLAIM(!finish_is_open());
    bool has_come = false, has_ended = false;
    finish([&] {
      void* const scope = running_piece()->scope;
      CLAIM(finish_is_open() && is_finish(finish_of(scope)));
      const scope_ticket taken = on_dispatch.scopes.take(scope);
      CLAIM(taken.scope == finish_of(scope));
      later([&, taken] {
        // The message has come back here, and begins a computation of the scope.
        void* const here = on_dispatch.scopes.give({}, taken);
        has_come = true;
        later([&, here] {
          has_ended = true;
          on_fiber.scope.left(here);
        });
      });
    });
    CLAIM(has_come && has_ended);
    CLAIM(!finish_is_open());
    CLAIM(tickets_open() == 0);
  });
}
TEST(scopes, a_finish_waits_for_what_was_sent_and_what_that_began) {
  EXPECT_CLAIMS(waits_for_messages);
}

void each_has_a_scope() {
  with_scopes([] {
    int begun = 0;
    finish({.in_flight = 2}, [&] {
      void* const scope = running_piece()->scope;
      scope_ticket calls[4];
      for (int i = 0; i < 2; ++i) calls[i] = on_dispatch.scopes.take(scope);
      CLAIM(on_dispatch.scopes.available(scope) == 0);
      CLAIM(calls[0].scope != calls[1].scope && calls[0].scope != finish_of(scope));
      later([&] {
        begun = 1;
        void* const call = on_dispatch.scopes.give({}, calls[0]);
        CLAIM(finish_of(call) == finish_of(scope));
        on_fiber.scope.left(call);
      });
      calls[2] = on_dispatch.scopes.take(scope);  // waits for the first one
      CLAIM(begun == 1 && on_dispatch.scopes.available(scope) == 0);
      on_dispatch.scopes.put_back(calls[1]);  // its message was not sent
      calls[3] = on_dispatch.scopes.take(scope);
      on_dispatch.scopes.put_back(calls[2]);
      on_dispatch.scopes.put_back(calls[3]);
    });
    CLAIM(!finish_is_open());
    CLAIM(tickets_open() == 0);
  });
}
TEST(scopes, in_a_finish_with_a_window_each_call_has_a_scope_of_its_own) {
  EXPECT_CLAIMS(each_has_a_scope);
}

void what_is_dropped_fails_its_finish() {
  with_scopes([] {
    bool is_lost = false;
    try {
      finish([] { on_dispatch.scopes.drop(on_dispatch.scopes.take(running_piece()->scope), 1); });
    } catch (const rank_lost& e) {
      is_lost = e.rank() == 1;
    }
    CLAIM(is_lost && !finish_is_open());
  });
}
TEST(scopes, calls_that_are_dropped_with_their_rank_fail_the_finish) {
  EXPECT_CLAIMS(what_is_dropped_fails_its_finish);
}

void is_given_back() {
  with_scopes([] {
    const scope_ticket come{ticket_id{1} << 48 | 7, 1 << 10};
    void* const scope = on_dispatch.scopes.give({}, come);
    CLAIM(finish_is_open() && finish_of(scope) == come.scope && !is_finish(come.scope));
    CLAIM(on_dispatch.scopes.available(scope) == come.weight / 2);
    CLAIM(on_dispatch.scopes.take(scope).weight == come.weight / 2);
    // A second computation of the scope brings some more.
    CLAIM(on_dispatch.scopes.give({}, come) == scope);
    CLAIM(on_dispatch.scopes.available(scope) == (come.weight / 2 + come.weight) / 2);
    const std::uint64_t sent = traffic_so_far().sent;
    on_fiber.scope.left(scope);
    CLAIM(traffic_so_far().sent == sent && finish_is_open());
    on_fiber.scope.left(scope);
    CLAIM(traffic_so_far().sent == sent + 1 && !finish_is_open());
  });
}
TEST(scopes, a_rank_gives_its_weight_back_when_its_last_computation_has_ended) {
  EXPECT_CLAIMS(is_given_back);
}

void failures_reach_the_finish() {
  with_scopes([] {
    int caught = 0;
    try {
      finish([] { one_way_failed(std::make_exception_ptr(7)); });
    } catch (int e) {
      caught = e;
    }
    CLAIM(caught == 7);
    CLAIM(!finish_is_open());
  });
}
TEST(scopes, what_leaves_a_one_way_call_is_thrown_by_its_finish) {
  EXPECT_CLAIMS(failures_reach_the_finish);
}

void a_loss_ends_those_that_have_sent() {
  with_scopes([] {
    finish([] { fail_finishes(1); });  // it has sent nothing to any rank
    bool is_lost = false;
    try {
      finish([] {
        (void)on_dispatch.scopes.take(running_piece()->scope);
        later([] { fail_finishes(1); });
      });
    } catch (const rank_lost& e) {
      is_lost = e.rank() == 1;
    }
    CLAIM(is_lost);
    // A body that waits for the end of a call learns of it, and so does its finish.
    bool waits_no_longer = false;
    is_lost = false;
    try {
      finish({.in_flight = 1}, [&] {
        (void)on_dispatch.scopes.take(running_piece()->scope);
        later([] { fail_finishes(1); });
        for (int i = 0; i < 2; ++i) {
          try {
            (void)on_dispatch.scopes.take(running_piece()->scope);
          } catch (const rank_lost&) {
            waits_no_longer = i == 1;
          }
        }
      });
    } catch (const rank_lost& e) {
      is_lost = e.rank() == 1;
    }
    CLAIM(waits_no_longer && is_lost);
  });
}
TEST(scopes, a_finish_that_has_sent_something_fails_when_a_rank_is_lost) {
  EXPECT_CLAIMS(a_loss_ends_those_that_have_sent);
}

}  // namespace
