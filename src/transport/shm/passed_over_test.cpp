// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/passed_over.hpp"

#include <gtest/gtest.h>

#include <cstring>

using namespace sojourn::detail;
using namespace sojourn::detail::shm;

namespace {

/// A message as it lies in a ring.
struct alignas(line) in_ring {
  explicit in_ring(char text, std::size_t bytes = 8) {
    header()->word.store(std::uint64_t{1} << 32 | bytes_in_ring(header_bytes + bytes));
    std::memset(payload(), text, bytes);
  }
  message_header* header() { return header_at(memory); }
  std::byte* payload() { return payload_of(header(), header()->length()); }
  arrival message() {
    return {2,       message_class::reply, 7, 0, 9, payload(), header()->length() - header_bytes,
            header()};
  }

  std::byte memory[8 * line] = {};
};

TEST(replies_passed_over, come_in_the_order_in_which_they_were_taken_out) {
  passed_over replies;
  EXPECT_FALSE(replies.any());
  for (char text : {'a', 'b', 'c'}) replies.keep(in_ring(text).message(), 0);
  for (char text : {'a', 'b', 'c'}) {
    ASSERT_TRUE(replies.any());
    EXPECT_EQ(static_cast<char>(*replies.first().payload), text);
    EXPECT_EQ(replies.first().ticket, 9u);
    replies.drop_first();
  }
  EXPECT_FALSE(replies.any());
}

TEST(replies_passed_over, have_their_payloads_besides_the_ring) {
  passed_over replies;
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{300}}) {
    in_ring message('a', bytes);
    replies.keep(message.message(), 0);
    std::memset(message.payload(), 'b', bytes);
    EXPECT_EQ(static_cast<char>(*replies.first().payload), 'a');
    EXPECT_FALSE(replies.first_is_long());
    replies.drop_first();
  }
}

TEST(replies_passed_over, leave_the_payload_of_a_long_one_where_it_is) {
  passed_over replies;
  in_ring message('a');
  message.header()->flags = transport::flag_long;
  arrival a = message.message();
  std::byte elsewhere[1];
  a.payload = elsewhere;
  replies.keep(a, 0);
  EXPECT_TRUE(replies.first_is_long());
  EXPECT_EQ(replies.first().payload, elsewhere);
  replies.drop_first();
}

TEST(replies_passed_over, have_bounded_room_in_which_payloads_elsewhere_count) {
  passed_over replies;
  EXPECT_TRUE(replies.has_room());
  replies.keep(in_ring('a').message(), std::size_t{1} << 30);
  EXPECT_FALSE(replies.has_room());
  replies.drop_first();
  EXPECT_TRUE(replies.has_room());
}

}  // namespace
