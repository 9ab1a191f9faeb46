// SPDX-License-Identifier: Apache-2.0
#include "rpc/kept_values.hpp"

#include <array>
#include <cstring>
#include <memory>

#include "rpc/rank_test.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/errors.hpp"

namespace {

using namespace sojourn;
using namespace sojourn::detail;

constexpr std::size_t bytes_of_block = 1000;
std::byte block[bytes_of_block];
const auto at_block = reinterpret_cast<std::uint64_t>(block);

TEST(kept_values, only_bytes_that_lie_in_one_block_are_there_to_be_read) {
  kept_values kept;
  EXPECT_FALSE(kept.has(at_block, 1));
  EXPECT_EQ(kept.keep(block, 400, false), at_block);
  kept.keep(block + 500, 16, false);
  EXPECT_EQ(kept.total(), 416U);
  EXPECT_TRUE(kept.has(at_block, 400));
  EXPECT_TRUE(kept.has(at_block + 399, 1));
  EXPECT_TRUE(kept.has(at_block + 500, 16));
  EXPECT_FALSE(kept.has(at_block + 399, 2));
  EXPECT_FALSE(kept.has(at_block + 400, 1));
  EXPECT_FALSE(kept.has(at_block + 499, 1));
  EXPECT_FALSE(kept.has(at_block, ~std::uint64_t{0}));
}

TEST(kept_values, what_was_only_lent_is_copied) {
  kept_values kept;
  block[3] = std::byte{7};
  const std::uint64_t copied = counts.marshal_copies;
  const std::uint64_t address = kept.keep(block, bytes_of_block, true);
  EXPECT_NE(address, at_block);
  EXPECT_EQ(std::memcmp(reinterpret_cast<const void*>(address), block, bytes_of_block), 0);
  EXPECT_EQ(counts.marshal_copies, copied + bytes_of_block);
  EXPECT_TRUE(kept.has(address, bytes_of_block));
  EXPECT_FALSE(kept.has(at_block, 1));
}

/// Values that say when they are destroyed.
struct watched_values final : kept_values {
  explicit watched_values(bool& is_gone) : gone(is_gone) {}
  ~watched_values() override { gone = true; }
  bool& gone;
};

void are_kept_until_read() {
  in_a_fiber([] {
    bool gone = false;
    CLAIM(!values_are_kept());
    const std::uint64_t holder = keep_for_reader(std::make_unique<watched_values>(gone));
    CLAIM(values_are_kept() && !gone);
    end_keeping(0, holder + 1);  // of no values
    CLAIM(values_are_kept() && !gone);
    end_keeping(0, holder);
    CLAIM(!values_are_kept() && gone);
    end_keeping(0, holder);
    CLAIM(!values_are_kept());
  });
}
TEST(kept_values, are_kept_until_their_reader_ends_that) { EXPECT_CLAIMS(are_kept_until_read); }

void others_wait_for_room() {
  in_a_fiber([] {
    constexpr std::size_t much = 200 * mib;
    wait_for_room_to_keep(2 * much);  // nothing else is kept
    auto values = std::make_unique<kept_values>();
    values->keep(block, much, false);
    const std::uint64_t holder = keep_for_reader(std::move(values));
    wait_for_room_to_keep(10 * mib);
    const std::uint64_t waits = counts.suspensions_for_room;
    bool ended = false;
    later([&] {
      ended = true;
      end_keeping(0, holder);
    });
    wait_for_room_to_keep(100 * mib);
    CLAIM(ended);
    CLAIM(counts.suspensions_for_room == waits + 1);
  });
}
TEST(kept_values, a_rank_that_keeps_much_keeps_more_only_when_some_was_read) {
  EXPECT_CLAIMS(others_wait_for_room);
}

void reads_what_it_keeps() {
  in_a_fiber([] {
    for (std::size_t i = 0; i < bytes_of_block; ++i) block[i] = static_cast<std::byte>(i);
    auto values = std::make_unique<kept_values>();
    values->keep(block, bytes_of_block, false);
    const std::uint64_t holder = keep_for_reader(std::move(values));
    std::byte read[100];
    std::size_t since_turn = 0;
    read_kept_block(0, holder, at_block + 50, read, sizeof read, since_turn);
    CLAIM(std::memcmp(read, block + 50, sizeof read) == 0);
    CLAIM(since_turn == sizeof read);
    int refused = 0;
    for (const auto& [of, address] :
         {std::pair{holder, at_block + 950}, std::pair{holder + 1, at_block}}) {
      try {
        read_kept_block(0, of, address, read, sizeof read, since_turn);
      } catch (const malformed_message&) {
        ++refused;
      }
    }
    CLAIM(refused == 2);
    end_keeping(0, holder);
  });
}
TEST(kept_values, a_rank_reads_its_own_and_nothing_beyond) { EXPECT_CLAIMS(reads_what_it_keeps); }

void results_that_nobody_takes_are_let_go_of() {
  in_a_fiber([] {
    bool gone = false;
    const ticket_id dropped = ticket_open();
    send_result_that_stays(dropped, std::make_unique<watched_values>(gone));
    CLAIM(values_are_kept());
    ticket_drop(dropped);
    CLAIM(gone && !values_are_kept());
    gone = false;
    const ticket_id taken = ticket_open();
    send_result_that_stays(taken, std::make_unique<watched_values>(gone));
    const auto values = take_result_that_stays(taken);
    CLAIM(values != nullptr && !gone && !values_are_kept());
  });
}
TEST(kept_values, those_of_a_result_end_with_it_whether_it_is_taken_or_dropped) {
  EXPECT_CLAIMS(results_that_nobody_takes_are_let_go_of);
}

void malformed_results_end_nothing() {
  in_a_fiber([] {
    bool gone = false;
    const std::uint64_t holder = keep_for_reader(std::make_unique<watched_values>(gone));
    struct {
      marshalled_header header;
      kept_place place;
    } result{{marshalled_header::form::kept, job.count, 0}, {holder, 0}};
    drop_kept_result(&result, sizeof result);  // no such rank
    result.header.home = 0;
    drop_kept_result(&result, sizeof result - 1);
    CLAIM(!gone);
    drop_kept_result(&result, sizeof result);
    CLAIM(gone);
  });
}
TEST(kept_values, a_malformed_result_ends_nothing) { EXPECT_CLAIMS(malformed_results_end_nothing); }

}  // namespace
