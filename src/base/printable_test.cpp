// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

#include <gtest/gtest.h>

using sojourn::detail::make_printable;
using sojourn::detail::printable;

TEST(printable, text_stays_as_it_is) {
  for (const char* text : {"", "plain", "two\nlines\tand a tab", "Größe, π, 木, 🙂"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(printable, control_characters_are_escaped) {
  EXPECT_EQ(printable("a\x1b[2Jb\r\x7f"), "a\\x1b[2Jb\\x0d\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  // U+009B begins a terminal's commands as ESC [ does.
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");
}

TEST(printable, what_hides_text_or_turns_it_around_is_escaped) {
  EXPECT_EQ(printable("a\u202eb"), "a\\xe2\\x80\\xaeb");
  EXPECT_EQ(printable("\u200b\u2066\ufeff"), "\\xe2\\x80\\x8b\\xe2\\x81\\xa6\\xef\\xbb\\xbf");
  EXPECT_EQ(printable("\u2020 \u2010"), "\u2020 \u2010");
  char text[] = "a\u202eb";
  make_printable(text);
  EXPECT_STREQ(text, "a???b");
}

TEST(printable, bytes_that_are_no_utf8_are_escaped) {
  EXPECT_EQ(printable("\x9b"), "\\x9b");
  EXPECT_EQ(printable("\xc3"), "\\xc3");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(printable("\xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80"),
            "\\xc0\\x80 \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80");
}

TEST(printable, in_place_each_control_character_is_one_mark) {
  char text[] = "a\x1b[2J\n\x7f";
  make_printable(text);
  EXPECT_STREQ(text, "a?[2J\n?");
}
