// SPDX-License-Identifier: Apache-2.0
#include "object/coherence/object_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "object/coherence/few.hpp"
#include "object/coherence/seldom.hpp"

using sojourn::detail::coherence::few;
using sojourn::detail::coherence::object_table;
using sojourn::detail::coherence::seldom;

namespace {

TEST(object_table, holds_what_a_map_would_hold) {
  std::mt19937 random(1);
  object_table<std::string> table;
  std::map<std::uint64_t, std::string> model;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t address = 64 * (random() % 500);
    if (random() % 3 == 0) {
      table.erase(address);
      model.erase(address);
    } else {
      const auto [value, is_new] = table.find_or_add(address);
      ASSERT_EQ(is_new, !model.contains(address));
      value = model[address] = std::to_string(i);
    }
    ASSERT_EQ(table.size(), model.size());
  }
  const object_table<std::string> copy = table;
  std::map<std::uint64_t, std::string> seen;
  copy.each([&](std::uint64_t address, const std::string& value) { seen[address] = value; });
  EXPECT_EQ(seen, model);
  for (const auto& [address, value] : model) EXPECT_EQ(*table.find(address), value);
}

TEST(object_table, what_is_known_of_an_object_stays_where_it_is_when_others_are_added) {
  object_table<int> table;
  int* const first = &table.find_or_add(1).first;
  for (std::uint64_t address = 2; address < 5000; ++address) table.find_or_add(address);
  EXPECT_EQ(table.find(1), first);
}

TEST(few, one_that_has_grown_holds_all_in_order) {
  few<int> list;
  for (int i = 0; i < 50; ++i) list.push_back(i);
  list.remove_if([](int i) { return i % 2 == 0; });
  few<int> copy = list;
  const few<int> moved = std::move(list);
  EXPECT_TRUE(list.empty());
  ASSERT_EQ(moved.size(), 25u);
  for (std::size_t i = 0; i < 25; ++i) {
    EXPECT_EQ(moved.begin()[i], static_cast<int>(2 * i + 1));
    EXPECT_EQ(copy.begin()[i], moved.begin()[i]);
  }
  copy.clear();
  copy.push_back(7);
  EXPECT_EQ(*copy.begin(), 7);
}

TEST(object_table, what_was_found_last_and_then_erased_is_not_found) {
  object_table<int> table;
  table.find_or_add(64).first = 1;
  ASSERT_NE(table.find(64), nullptr);
  table.erase(64);
  EXPECT_EQ(table.find(64), nullptr);
  table.find_or_add(128).first = 2;
  object_table<int> moved = std::move(table);
  EXPECT_EQ(table.find(128), nullptr);
  EXPECT_EQ(*moved.find(128), 2);
}

TEST(seldom, it_is_a_pointer_long_and_holds_all_in_order) {
  static_assert(sizeof(seldom<int>) == sizeof(void*));
  seldom<int> list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.begin(), list.end());
  for (const int i : {3, 1, 3, 2}) list.push_back(i);
  const seldom<int> copy = list;
  list.remove(3);
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(list.front(), 1);
  EXPECT_EQ(list.back(), 2);
  list.pop_front();
  list.pop_back();
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(std::vector<int>(copy.begin(), copy.end()), (std::vector{3, 1, 3, 2}));
}

TEST(few, an_element_of_the_list_can_be_added_to_it) {
  few<int> list;
  list.push_back(3);
  list.push_back(*list.begin());
  EXPECT_EQ(list.begin()[1], 3);
}

}  // namespace
