// SPDX-License-Identifier: Apache-2.0
#include "object/copy_rooms.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

using sojourn::detail::copy_rooms;

namespace {

std::uint64_t address_of(const void* room) { return reinterpret_cast<std::uint64_t>(room); }

TEST(copy_rooms, rooms_of_every_length_are_long_enough_and_apart) {
  copy_rooms rooms(8 << 20);
  std::map<std::uint64_t, std::size_t> taken;
  for (std::size_t bytes = 0; bytes <= copy_rooms::longest; bytes += bytes < 2000 ? 1 : 509) {
    void* const room = rooms.take(bytes);
    ASSERT_NE(room, nullptr) << bytes;
    EXPECT_EQ(address_of(room) % 16, 0u);
    std::memset(room, 1, bytes);
    taken[address_of(room)] = bytes;
  }
  std::uint64_t end = 0;
  for (const auto& [address, bytes] : taken) {
    EXPECT_GE(address, end);
    end = address + bytes;
  }
}

TEST(copy_rooms, every_address_of_a_block_is_traced_to_its_room) {
  copy_rooms rooms(1 << 20);
  for (const std::size_t bytes : {16, 48, 1000, 1025, 5000, 66000}) {
    for (int i = 0; i < 3; ++i) {
      void* const room = rooms.take(bytes);
      EXPECT_EQ(rooms.room_at(address_of(room)), room);
      EXPECT_EQ(rooms.room_at(address_of(room) + bytes - 1), room) << bytes;
    }
  }
}

TEST(copy_rooms, an_address_in_no_room_is_traced_to_none) {
  copy_rooms rooms(1 << 20);
  EXPECT_EQ(rooms.room_at(rooms.first_address()), nullptr);
  void* const room = rooms.take(48);
  EXPECT_EQ(rooms.room_at(address_of(room) + 48), nullptr);
  EXPECT_EQ(rooms.room_at(12345), nullptr);
}

TEST(copy_rooms, a_room_that_was_given_back_is_taken_again) {
  copy_rooms rooms(1 << 20);
  void* const room = rooms.take(100);
  rooms.give_back(room);
  EXPECT_EQ(rooms.take(100), room);
}

/// All memory is used for one length, and then for another.
TEST(copy_rooms, addresses_of_one_length_can_be_used_for_another) {
  copy_rooms rooms(1 << 20);
  for (const std::size_t bytes : {64, 640, 6400, 64000, 32}) {
    std::vector<void*> all;
    while (void* const room = rooms.take(bytes)) all.push_back(room);
    EXPECT_GT(all.size() * bytes, std::size_t{4} << 20) << bytes;
    for (void* const room : all) rooms.give_back(room);
  }
}

}  // namespace
