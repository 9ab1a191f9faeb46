// SPDX-License-Identifier: Apache-2.0
#include "base/cut_text.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/check.hpp"

namespace {

using namespace sojourn::detail;

std::string put(std::string_view text, std::size_t room) {
  std::string to(room + 1, '#');
  const std::size_t size = put_text(to.data(), room, text);
  EXPECT_LE(size, room);
  EXPECT_EQ(to[room], '#');
  return to.substr(0, size);
}

TEST(cut_text, what_fits_stays_whole) {
  EXPECT_EQ(put("", 4), "");
  EXPECT_EQ(put("four", 4), "four");
}

TEST(cut_text, the_mark_is_in_place_of_the_end) {
  EXPECT_EQ(put("fifteen letters", 10), "fifteen...");
  EXPECT_EQ(put("four", 3), "...");
  EXPECT_EQ(put("four", 2), "fo");
}

TEST(cut_text, no_character_is_cut) {
  EXPECT_EQ(put("12ä456", 6), "12...");
  EXPECT_EQ(put("1ä3456", 6), "1ä...");
  EXPECT_EQ(put("🙂🙂🙂", 10), "🙂...");
  EXPECT_EQ(put("木木木", 8), "木...");
}

TEST(cut_text, bytes_that_are_no_characters_are_cut_anywhere) {
  EXPECT_EQ(put(std::string(20, '\x80'), 12), std::string(9, '\x80') + "...");
}

TEST(cut_text, so_is_what_printf_makes) {
  char to[9];
  print_text(to, sizeof to, "%s %d", "seven", 12);
  EXPECT_STREQ(to, "seven 12");
  print_text(to, sizeof to, "%s %d", "seven", 123);
  EXPECT_STREQ(to, "seven...");
}

TEST(cut_text, format_cuts_nothing) {
  const std::string text(5000, 'x');
  EXPECT_EQ(format("%s!", text.c_str()), text + "!");
}

}  // namespace
