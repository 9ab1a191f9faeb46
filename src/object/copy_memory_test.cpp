// SPDX-License-Identifier: Apache-2.0
#include "object/copy_memory.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

using sojourn::detail::copy_at_hand;
using sojourn::detail::copy_block;
using sojourn::detail::copy_memory;

namespace {

constexpr std::uint64_t somewhere = 0x7000'0000'0000;

copy_block* copied(copy_memory& memory, std::uint64_t address, std::size_t bytes) {
  copy_block* const block = memory.take(address, {bytes});
  std::memset(block->object(), 7, bytes);
  memory.make_good(block);
  return block;
}

TEST(copy_memory, only_a_good_copy_is_found) {
  copy_memory memory(1 << 20);
  copy_block* const block = memory.take(somewhere, {40});
  EXPECT_EQ(memory.find(somewhere), nullptr);
  EXPECT_EQ(copy_at_hand(somewhere, 40), nullptr);
  memory.make_good(block);
  EXPECT_EQ(memory.find(somewhere), block);
  EXPECT_EQ(copy_at_hand(somewhere, 40), block);
  memory.make_old(block);
  EXPECT_EQ(memory.find(somewhere), nullptr);
  EXPECT_EQ(copy_at_hand(somewhere, 40), nullptr);
}

TEST(copy_memory, an_object_of_another_length_at_the_address_is_not_found_at_hand) {
  copy_memory memory(1 << 20);
  copied(memory, somewhere, 40);
  EXPECT_EQ(copy_at_hand(somewhere, 16), nullptr);
}

TEST(copy_memory, nothing_is_at_hand_without_a_memory) {
  {
    copy_memory memory(1 << 20);
    copied(memory, somewhere, 40);
  }
  EXPECT_EQ(copy_at_hand(somewhere, 40), nullptr);
  EXPECT_EQ(copy_at_hand(0, 0), nullptr);
}

TEST(copy_memory, many_copies_are_all_found) {
  copy_memory memory(8 << 20);
  constexpr std::size_t count = 5000;
  std::vector<copy_block*> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(copied(memory, somewhere + 48 * i, 40));
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(memory.find(somewhere + 48 * i), all[i]);
    ASSERT_EQ(copy_at_hand(somewhere + 48 * i, 40), all[i]) << "find() brings it to hand";
  }
}

TEST(copy_memory, an_old_copy_stays_while_a_method_uses_it) {
  copy_memory memory(1 << 20);
  copy_block* const block = copied(memory, somewhere, 40);
  const std::vector<const copy_block*> used{block};
  memory.make_old(block);
  memory.free_old(used);
  EXPECT_EQ(memory.old_ones(), 1u);
  copy_block* const newer = memory.take(somewhere, {40});
  std::memset(newer->object(), 8, 40);
  EXPECT_EQ(static_cast<char*>(block->object())[39], 7);
  memory.free_old({});
  EXPECT_EQ(memory.old_ones(), 0u);
}

TEST(copy_memory, the_copy_that_came_first_is_the_oldest) {
  copy_memory memory(1 << 20);
  copy_block* const first = copied(memory, somewhere, 40);
  copy_block* const second = copied(memory, somewhere + 64, 40);
  copy_block* const third = copied(memory, somewhere + 128, 40);
  EXPECT_EQ(memory.oldest(), first);
  memory.make_old(second);
  memory.make_old(first);
  EXPECT_EQ(memory.oldest(), third);
  memory.make_old(third);
  EXPECT_EQ(memory.oldest(), nullptr);
}

TEST(copy_memory, is_over_when_more_is_taken_than_there_should_be) {
  copy_memory memory(64 << 10);
  std::uint64_t address = somewhere;
  while (!memory.is_over()) {
    ASSERT_LT(address, somewhere + (256 << 10));
    copied(memory, address, 1000);
    address += 1024;
  }
  EXPECT_GT(address, somewhere + (32 << 10));
  memory.make_old(memory.oldest());
  EXPECT_FALSE(memory.is_over());
}

TEST(copy_memory, an_address_in_a_copy_is_traced_to_the_object) {
  copy_memory memory(1 << 20);
  copied(memory, somewhere, 40);
  copy_block* const block = copied(memory, somewhere + 4096, 40);
  const auto at = reinterpret_cast<std::uint64_t>(block->object());
  EXPECT_EQ(memory.original(at), somewhere + 4096);
  EXPECT_EQ(memory.original(at + 16), somewhere + 4096 + 16);
  EXPECT_EQ(memory.original(12345), 12345u);
}

/// Copies of all lengths come and go for long without running out of addresses.
TEST(copy_memory, memory_is_used_again) {
  copy_memory memory(256 << 10);
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::size_t bytes = 16 + (i * 7919) % 60'000;
    while (memory.is_over()) memory.make_old(memory.oldest());
    memory.free_old({});
    copy_block* const block = memory.take(somewhere + i * 65536, {bytes});
    ASSERT_NE(block, nullptr) << "copy number " << i;
    memory.make_good(block);
  }
}

struct counted {
  static inline int alive = 0;
  std::vector<int> numbers;

  counted() { ++alive; }
  explicit counted(std::vector<int> n) : numbers(std::move(n)) { ++alive; }
  counted(const counted& other) : numbers(other.numbers) { ++alive; }
  ~counted() { --alive; }
  template <class Archive>
  void serialize(Archive& ar) {
    ar(numbers);
  }
};

std::uint16_t number_of_counted() {
  static const std::uint16_t number =
      sojourn::detail::register_object_type(sojourn::detail::object_type_of<counted>);
  return number;
}
std::vector<std::byte> message_of(const counted& c) {
  return sojourn::detail::object_type_of<counted>.write(&c);
}
void fill(copy_memory& memory, copy_block* block, const std::vector<std::byte>& message) {
  memory.fill(block, message.data(), message.size());
}
const std::vector<int>& numbers_in(copy_block* block) {
  return static_cast<counted*>(block->object())->numbers;
}

TEST(copy_memory, a_marshalled_object_is_made_anew_only_from_another_message) {
  copy_memory memory(1 << 20);
  copy_block* const block = memory.take(somewhere, {sizeof(counted), number_of_counted()});
  fill(memory, block, message_of(counted({1, 2, 3})));
  memory.make_good(block);
  const int* const first = numbers_in(block).data();
  memory.make_old(block);
  fill(memory, block, message_of(counted({1, 2, 3})));
  EXPECT_EQ(numbers_in(block).data(), first);
  fill(memory, block, message_of(counted({4, 5, 6, 7})));
  EXPECT_EQ(numbers_in(block), (std::vector{4, 5, 6, 7}));
  EXPECT_EQ(counted::alive, 1);
  memory.free_old({});
  EXPECT_EQ(counted::alive, 0);
}

TEST(copy_memory, an_object_that_left_is_made_anew_from_the_message_in_which_it_came) {
  copy_memory memory(1 << 20);
  copy_block* const block = memory.take(somewhere, {sizeof(counted), number_of_counted()});
  const auto came = message_of(counted());
  fill(memory, block, came);
  memory.make_object(block);
  static_cast<counted*>(block->object())->numbers = {1};
  const auto left = message_of(counted({1}));
  memory.note_sent(block, left.data(), left.size());
  memory.make_old(block);
  EXPECT_EQ(memory.object_bytes(), 0u);
  fill(memory, block, came);
  EXPECT_TRUE(numbers_in(block).empty());
  memory.free_old({});
  EXPECT_EQ(counted::alive, 0);
}

TEST(copy_memory, counts_what_marshalled_objects_own) {
  copy_memory memory(10'000);
  const auto message = message_of(counted(std::vector<int>(1500)));
  std::vector<copy_block*> all;
  for (std::uint64_t i = 0; i < 2; ++i) {
    all.push_back(memory.take(somewhere + i * 64, {sizeof(counted), number_of_counted()}));
    fill(memory, all.back(), message);
    memory.make_good(all.back());
    EXPECT_EQ(memory.is_over(), i == 1);
  }
  EXPECT_TRUE(copy_memory::are_alike(*all[0], *all[1]));
  memory.make_old(all[0]);
  EXPECT_FALSE(memory.is_over());
  EXPECT_GE(memory.old_bytes(), message.size());
  memory.make_old(all[1]);
  memory.free_old({});
  EXPECT_EQ(memory.old_bytes(), 0u);
  EXPECT_EQ(counted::alive, 0);
}

}  // namespace
