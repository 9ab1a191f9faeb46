// SPDX-License-Identifier: Apache-2.0
#include "sojourn/calls/inline_string.hpp"

#include <gtest/gtest.h>

#include <compare>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_set>

#include "sojourn/calls/travels.hpp"

namespace {

using sojourn::inline_string;
using namespace std::string_view_literals;

static_assert(std::is_trivially_copyable_v<inline_string<16>>);
static_assert(sojourn::travels<inline_string<300>>);
static_assert(sizeof(inline_string<15>) == 16, "a length and the characters, nothing else");
static_assert(sizeof(inline_string<255>) == 256);
static_assert(sizeof(inline_string<256>) == 258);
static_assert(inline_string<8>("abc").size() == 3 && inline_string<8>("abc")[2] == 'c');

TEST(inline_string, holds_what_it_was_given) {
  inline_string<5> empty;
  EXPECT_TRUE(empty.empty());
  EXPECT_EQ(empty.view(), "");
  inline_string<5> full = "abcde";
  EXPECT_EQ(full.size(), 5u);
  EXPECT_EQ(full.view(), "abcde");
  EXPECT_EQ(full.str(), std::string("abcde"));
  EXPECT_EQ(std::string(full.begin(), full.end()), "abcde");
  inline_string<5> copy = full;
  full = "x"sv;
  EXPECT_EQ(copy, inline_string<5>("abcde"));
  EXPECT_EQ(full.view(), "x");
  EXPECT_EQ(inline_string<8>("a\0b"sv).size(), 3u) << "NUL is a character";
  std::ostringstream out;
  out << copy;
  EXPECT_EQ(out.str(), "abcde");
}

TEST(inline_string, what_is_too_long_is_refused_and_changes_nothing) {
  inline_string<5> s = "abc";
  try {
    s = "abcdef";
    ADD_FAILURE() << "it is accepted";
  } catch (const std::length_error& e) {
    EXPECT_STREQ(e.what(), "inline_string: a text of 6 characters does not fit in 5");
  }
  EXPECT_EQ(s.view(), "abc");
  EXPECT_THROW(inline_string<255>(std::string(256, 'x')), std::length_error);
  EXPECT_EQ(inline_string<256>(std::string(256, 'x')).size(), 256u) << "beyond one byte of length";
  EXPECT_EQ(inline_string<65535>(std::string(65535, 'x')).size(), 65535u);
}

TEST(inline_string, compares_and_hashes_as_its_text) {
  std::mt19937 random(3);
  auto text = [&] {
    std::string t(random() % 6, 'a');
    for (char& c : t)
      c = static_cast<char>(random() % 4 == 0 ? 0x80 + random() % 2 : 'a' + random() % 2);
    return t;
  };
  for (int i = 0; i < 5000; ++i) {
    std::string a = text(), b = text();
    // Assignments leave no trace of the earlier content.
    inline_string<6> x = "zzzzzz", y;
    x = a;
    y = b;
    EXPECT_EQ(x == y, a == b);
    EXPECT_EQ(x <=> y, std::string_view(a) <=> std::string_view(b));
    EXPECT_EQ(std::hash<inline_string<6>>()(x), std::hash<std::string_view>()(a));
  }
  std::set<inline_string<6>> ordered{"b", "a", "ab", "a"};
  EXPECT_EQ(ordered.size(), 3u);
  EXPECT_EQ(ordered.begin()->view(), "a");
  std::unordered_set<inline_string<6>> hashed{"b", "a", "ab", "a"};
  EXPECT_TRUE(hashed.contains("ab"));
}

}  // namespace
