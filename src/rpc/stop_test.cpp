// SPDX-License-Identifier: Apache-2.0
#include "rpc/stop.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include "base/saved_file.hpp"
#include "rpc/rank_test.hpp"
#include "sojourn/waiting/stop_token.hpp"

namespace {

using namespace sojourn::detail;

void waiters_are_told() {
  in_a_fiber([] {
    const stop_id requested = stop_open(), closed = stop_open();
    CLAIM(requested != closed);
    CLAIM(stop_state_here(requested) == stop_state::open);
    later([=] { stop_request(requested); });
    CLAIM(stop_wait(requested) == stop_state::requested);
    later([=] { stop_close(closed); });
    CLAIM(stop_wait(closed) == stop_state::gone);
    // Both are over: nobody waits any more.
    CLAIM(stop_wait(requested) == stop_state::requested);
    CLAIM(stop_wait(closed) == stop_state::gone);
    stop_close(requested);
    CLAIM(stop_state_here(requested) == stop_state::requested);
    CLAIM(tickets_open() == 0);
  });
}
TEST(stop, fibers_that_wait_are_told_how_the_source_ended) { EXPECT_CLAIMS(waiters_are_told); }

void ends_are_kept_apart() {
  in_a_fiber([] {
    std::vector<stop_id> ids;
    for (int i = 0; i < 200; ++i) ids.push_back(stop_open());
    for (std::size_t i = 0; i < ids.size(); ++i)
      i % 3 == 0 ? stop_request(ids[i]) : stop_close(ids[i]);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      CLAIM(stop_state_here(ids[i]) == (i % 3 == 0 ? stop_state::requested : stop_state::gone));
    }
  });
}
TEST(stop, of_many_sources_each_is_known_as_it_ended) { EXPECT_CLAIMS(ends_are_kept_apart); }

constexpr stop_id of_other_rank = stop_id{1} << 48 | 5;

void others_are_asked_once() {
  in_a_fiber([] {
    const std::uint64_t sent = traffic_so_far().sent;
    CLAIM(stop_state_here(of_other_rank) == stop_state::open);
    CLAIM(traffic_so_far().sent == sent + 1);
    CLAIM(stop_state_here(of_other_rank) == stop_state::open);
    CLAIM(traffic_so_far().sent == sent + 1);
  });
}
TEST(stop, the_rank_of_another_source_is_asked_once) { EXPECT_CLAIMS(others_are_asked_once); }

std::string saved_file() { return testing::TempDir() + "saved_stops." + std::to_string(getppid()); }

void saves() {
  in_a_fiber([] {
    const stop_id open = stop_open(), requested = stop_open(), closed = stop_open();
    CLAIM((open & 0xff) == 1 && (closed & 0xff) == 3);
    stop_request(requested);
    stop_close(closed);
    CLAIM(stop_state_here(of_other_rank) == stop_state::open);
    file_writer to(saved_file());
    save_stops(to);
    to.finish();
  });
}
void loads() {
  in_a_fiber([] {
    file_reader from(saved_file());
    load_stops(from);
    CLAIM(stop_state_here(1) == stop_state::open);
    CLAIM(stop_state_here(2) == stop_state::requested);
    CLAIM(stop_state_here(3) == stop_state::gone);
    // Tokens of the sources before may still be in use.
    CLAIM(stop_open() == 4);
    const std::uint64_t sent = traffic_so_far().sent;
    CLAIM(stop_state_here(of_other_rank) == stop_state::open);
    CLAIM(traffic_so_far().sent == sent);
  });
}
TEST(stop, a_restored_rank_knows_what_it_knew) {
  EXPECT_CLAIMS(saves);
  EXPECT_CLAIMS(loads);
  std::filesystem::remove(testing::TempDir() + "saved_stops." + std::to_string(getpid()));
}

}  // namespace
