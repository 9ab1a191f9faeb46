// SPDX-License-Identifier: Apache-2.0
#include "shared/shared_report.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sojourn::detail::pages {
namespace {

constexpr std::uint64_t first_page = 0x10000;

report_part part_of(std::uint64_t remote_faults) {
  report_part part;
  sojourn::shared::counters c;
  c.faults_remote = remote_faults;
  part.ranks.push_back(c);
  return part;
}

bool has(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

TEST(shared_report, adds_up_what_ranks_count_and_where_they_fault) {
  report_part one = part_of(3);
  one.blocks.push_back({first_page, 2 * page_bytes, "grid", "main.cpp:41"});
  one.pages[1].stores = 5;
  one.sites.push_back({1, 5, "main.cpp:50"});
  report_part other = part_of(4);
  other.pages[1].stores = 2;
  other.sites.push_back({1, 2, "main.cpp:50"});
  const shared_report all({written(one), written(other)}, first_page);
  EXPECT_TRUE(has(all.text(), "Shared memory of 2 ranks"));
  EXPECT_TRUE(has(all.text(), "page at 0x11000, from byte 4096 of `grid` (main.cpp:41)"));
  EXPECT_TRUE(has(all.text(), "0 load faults and 7 store faults"));
  EXPECT_TRUE(has(all.text(), "7 at main.cpp:50"));
  EXPECT_TRUE(has(all.json(), "\"faults_remote\": {\"per_rank\": [3, 4], \"sum\": 7}"));
}

TEST(shared_report, tells_a_race_once_that_two_ranks_have_found) {
  report_part one = part_of(0);
  one.pages[0].met_on_a_byte = 2;
  one.races.push_back({0, 12, {0, 1}, 2});
  report_part other = one;
  const shared_report all({written(one), written(other)}, first_page);
  EXPECT_TRUE(has(all.text(),
                  "Data race: ranks 0 and 1 stored to address 0x1000c, and nothing ordered them "
                  "(2 times)"));
}

TEST(shared_report, a_block_may_be_named_on_another_rank) {
  report_part one = part_of(0);
  one.blocks.push_back({first_page, page_bytes, "", "a.cpp:1"});
  one.pages[0].loads = 1;
  report_part other = part_of(0);
  other.blocks.push_back({first_page + 8, 0, "a name\nof two lines", ""});
  const shared_report all({written(one), written(other)}, first_page);
  EXPECT_TRUE(has(all.text(), "byte 0 of `a name of two lines` (a.cpp:1)"));
}

TEST(shared_report, shows_the_worst_pages_first_and_says_how_many_are_left_out) {
  report_part one = part_of(0);
  one.pages[0].remote = 1;
  one.pages[1].remote = 9;
  one.pages[2].remote = 5;
  const std::string text = shared_report({written(one)}, first_page).text(2);
  EXPECT_LT(text.find("0x11000"), text.find("0x12000"));
  EXPECT_FALSE(has(text, "0x10000"));
  EXPECT_TRUE(has(text, "and 1 more"));
}

TEST(shared_report, leaves_out_what_is_no_part) {
  const shared_report all({"x 1 2\np\nr 1\nc 1 2 3\n", ""}, first_page);
  EXPECT_TRUE(has(all.text(), "0 pages with faults"));
}

}  // namespace
}  // namespace sojourn::detail::pages
