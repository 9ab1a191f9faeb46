// SPDX-License-Identifier: Apache-2.0
#include "message/own_requests.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>

namespace {

using sojourn::detail::arrival;
using sojourn::detail::message_class;
using sojourn::detail::own_requests;

constexpr std::size_t longest = 1 << 20;

/// `number`, which is in the ticket, the handler and all bytes, tells requests apart.
bool send(own_requests& queue, std::uint32_t number, std::size_t bytes) {
  std::byte* room = queue.reserve(bytes);
  if (room == nullptr) return false;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(room) % 16, 0U);
  std::memset(room, static_cast<int>(number & 0xff), bytes);
  queue.commit(static_cast<std::uint16_t>(number), 0x2, number);
  return true;
}

void expect_next(own_requests& queue, std::uint32_t number, std::size_t bytes) {
  ASSERT_FALSE(queue.empty());
  const arrival a = queue.next();
  EXPECT_EQ(a.source, 3);
  EXPECT_EQ(a.kind, message_class::request);
  EXPECT_EQ(a.handler, static_cast<std::uint16_t>(number));
  EXPECT_EQ(a.flags, 0x2);
  EXPECT_EQ(a.ticket, number);
  ASSERT_EQ(a.bytes, bytes);
  for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(a.payload[i], std::byte(number & 0xff));
  queue.consume();
}

TEST(own_requests, come_in_the_order_of_their_commits_whatever_their_lengths) {
  own_requests queue;
  queue.attach(3, longest);
  std::minstd_rand random(1);
  std::deque<std::size_t> model;
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 8 < 5) {
      const std::size_t bytes = random() % 100 == 0 ? random() % longest : random() % 600;
      const bool expected = queue.has_room(bytes);
      ASSERT_EQ(send(queue, sent, bytes), expected);
      refused += !expected;
      if (!expected) continue;
      model.push_back(bytes);
      ++sent;
    } else if (!model.empty()) {
      expect_next(queue, received++, model.front());
      model.pop_front();
    }
    ASSERT_EQ(queue.empty(), model.empty());
  }
  EXPECT_GT(refused, 0);
}

TEST(own_requests, are_refused_beyond_a_bound_until_all_before_them_were_consumed) {
  own_requests queue;
  queue.attach(3, longest);
  std::uint32_t sent = 0;
  while (send(queue, sent, 100)) ASSERT_LT(++sent, 10'000U);
  EXPECT_GT(sent, 100U);
  for (std::uint32_t i = 0; i < sent; ++i) {
    EXPECT_FALSE(queue.has_room(100));
    expect_next(queue, i, 100);
  }
  EXPECT_TRUE(send(queue, sent, 100));
}

TEST(own_requests, are_never_refused_by_an_empty_queue) {
  own_requests queue;
  queue.attach(3, longest);
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(queue.has_room(longest));
    ASSERT_TRUE(send(queue, i, longest));
    EXPECT_FALSE(queue.has_room(0));
    expect_next(queue, i, longest);
  }
}

}  // namespace
