// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/page_report.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <vector>

#include "shared/pages/diff.hpp"
#include "shared/pages/interval_log.hpp"

namespace sojourn::detail::pages {
namespace {

constexpr page_number page = 3;

/// An interval of one of two ranks, with what that rank knew.
class interval_of {
 public:
  interval_of(int owner, interval of_0, interval of_1) {
    record_.owner = static_cast<std::uint16_t>(owner);
    record_.index = owner == 0 ? of_0 : of_1;
    clock_ = {of_0, of_1};
  }
  const interval_record& record() const { return record_; }

 private:
  interval_record record_{};
  std::array<interval, 2> clock_{};  // Where interval_record::clock() looks for it.
};
static_assert(sizeof(interval_of) == sizeof(interval_record) + 2 * sizeof(interval));

/// The diff of a page in which one byte has changed.
std::vector<std::byte> changed_at(std::size_t offset) {
  std::vector<std::byte> twin(page_bytes);
  std::vector<std::byte> now = twin;
  now[offset] = std::byte{1};
  std::vector<std::byte> diff(diff_bytes_max);
  diff.resize(make_diff(diff.data(), now.data(), twin.data()));
  return diff;
}

struct page_report_test : testing::Test {
  page_report report{2, std::pmr::new_delete_resource()};
  const page_notes& notes() const { return report.pages().at(page); }
};

TEST_F(page_report_test, two_unordered_stores_to_a_byte_are_a_race_of_both_ranks) {
  report.meet(page, interval_of(1, 0, 1).record(), changed_at(70));
  report.meet(page, interval_of(0, 1, 0).record(), changed_at(70));
  ASSERT_EQ(report.races().size(), 1u);
  const race_note r = report.races().front();
  EXPECT_EQ(r.page, page);
  EXPECT_EQ(r.offset, 70u);
  EXPECT_EQ(r.ranks[0], 0);
  EXPECT_EQ(r.ranks[1], 1);
  EXPECT_EQ(r.times, 1u);
  EXPECT_EQ(notes().writers, 3u);
}

TEST_F(page_report_test, unordered_stores_to_neighbouring_bytes_are_false_sharing) {
  report.meet(page, interval_of(0, 1, 0).record(), changed_at(70));
  report.meet(page, interval_of(1, 0, 1).record(), changed_at(71));
  EXPECT_TRUE(report.races().empty());
  EXPECT_EQ(notes().met_apart, 1u);
  EXPECT_EQ(notes().met_on_a_byte, 0u);
}

TEST_F(page_report_test, ordered_stores_to_a_byte_are_no_race) {
  // Rank 1 knew of rank 0's interval, so the two are ordered, even if this rank learns of the later
  // one first.
  report.meet(page, interval_of(1, 1, 1).record(), changed_at(70));
  report.meet(page, interval_of(0, 1, 0).record(), changed_at(70));
  EXPECT_TRUE(report.races().empty());
  EXPECT_EQ(report.pages().at(page).met_apart, 0u);
}

TEST_F(page_report_test, a_diff_that_comes_twice_meets_others_once) {
  for (int i = 0; i < 3; ++i) {
    report.meet(page, interval_of(0, 1, 0).record(), changed_at(70));
    report.meet(page, interval_of(1, 0, 1).record(), changed_at(70));
  }
  EXPECT_EQ(report.races().front().times, 1u);
}

TEST_F(page_report_test, diffs_before_a_collection_meet_no_later_ones) {
  report.meet(page, interval_of(0, 1, 0).record(), changed_at(70));
  report.forget_diffs();
  report.meet(page, interval_of(1, 0, 1).record(), changed_at(70));
  EXPECT_TRUE(report.races().empty());
}

}  // namespace
}  // namespace sojourn::detail::pages
