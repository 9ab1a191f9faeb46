// SPDX-License-Identifier: Apache-2.0
#include "driver/report.hpp"

#include <gtest/gtest.h>

#include <string>

#include "driver/measure.hpp"

namespace {

using namespace bench;

samples two_rounds() { return {{"ours", {10, 40}}, {"peer", {20, 20}}}; }

std::string table_of(const report& result) {
  testing::internal::CaptureStdout();
  result.print_table();
  return testing::internal::GetCapturedStdout();
}

TEST(report, a_ratio_is_the_median_of_the_rounds_with_its_companions) {
  report result;
  result.add_ratio("rpc", "key", "what", 1.5, compare(two_rounds(), "ours", "peer"));
  EXPECT_DOUBLE_EQ(result.json()["rpc"]["key"], 1.25);
  EXPECT_DOUBLE_EQ(result.json()["rpc"]["key_min"], 0.5);
  EXPECT_EQ(result.json()["rpc"]["key_pairs"], 2);
  EXPECT_NE(table_of(result).find("met"), std::string::npos);
}

samples five_rounds() { return {{"ours", {10, 20, 30, 40, 50}}, {"peer", {10, 10, 10, 10, 10}}}; }

TEST(report, quartiles_stand_beside_a_median_and_in_the_table_the_least_does_not) {
  report result;
  result.add_ratio("rpc", "key", "what", 1.5, compare(five_rounds(), "ours", "peer"));
  EXPECT_DOUBLE_EQ(result.json()["rpc"]["key"], 3);
  EXPECT_DOUBLE_EQ(result.json()["rpc"]["key_q1"], 2);
  EXPECT_DOUBLE_EQ(result.json()["rpc"]["key_q3"], 4);
  EXPECT_DOUBLE_EQ(result.json()["rpc"]["key_min"], 1);
  const std::string table = table_of(result);
  EXPECT_NE(table.find("2 to 4"), std::string::npos);
  EXPECT_EQ(table.find("least"), std::string::npos);
}

TEST(report, a_detail_has_quartiles_and_no_line_of_its_own) {
  report result;
  result.add_ratio_detail("rpc", "key", compare(five_rounds(), "ours", "peer"));
  for (const char* key : {"key", "key_q1", "key_q3", "key_min"}) {
    EXPECT_TRUE(result.json()["rpc"].contains(key)) << key;
  }
  EXPECT_EQ(table_of(result).find("key"), std::string::npos);
}

TEST(report, the_page_has_figures_and_notes_and_no_tables) {
  report result;
  result.add_header("machine", {{"processor", "a processor"}}, "a processor, 2 cores");
  result.add_ratio("rpc", "key", "what it is", 1.5, compare(five_rounds(), "ours", "peer"));
  result.add_missing("rpc", "other", "what", 1, "it was not found");
  result.add_text("a table of its own");
  testing::internal::CaptureStdout();
  result.print_page();
  const std::string page = testing::internal::GetCapturedStdout();
  EXPECT_NE(page.find("a processor, 2 cores"), std::string::npos);
  EXPECT_NE(page.find("what it is"), std::string::npos);
  EXPECT_NE(page.find("it was not found"), std::string::npos);
  EXPECT_EQ(page.find("a table of its own"), std::string::npos);
  EXPECT_NE(table_of(result).find("a table of its own"), std::string::npos);
}

TEST(report, without_figures_there_is_no_head_of_a_table) {
  report result;
  result.add_text("a table of its own");
  const std::string table = table_of(result);
  EXPECT_EQ(table.find("quartiles"), std::string::npos);
  EXPECT_NE(table.find("a table of its own"), std::string::npos);
}

TEST(measure, a_quantile_lies_between_two_values_in_proportion) {
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.75), 7);
  EXPECT_DOUBLE_EQ(quantile({1, 2}, 1), 2);
}

TEST(measure, the_quickest_has_the_least_median_not_the_least_value) {
  const samples all{{"steady", {10, 10, 10}}, {"lucky", {1, 20, 20}}};
  EXPECT_EQ(quickest(all, {"lucky", "steady"}), "steady");
}

TEST(report, a_ratio_of_rates_divides_the_times_the_other_way_round) {
  report result;
  result.add_rate_ratio("rpc", "key", "what", 1.5, compare(two_rounds(), "ours", "peer"));
  EXPECT_DOUBLE_EQ(result.json()["rpc"]["key"], 1.25);  // of 2 and 0.5
  EXPECT_DOUBLE_EQ(result.json()["rpc"]["key_min"], 0.5);
  EXPECT_DOUBLE_EQ(result.json()["rpc"]["key_ours_ns"], 25);
  EXPECT_NE(table_of(result).find(">= 1.5  MISSED"), std::string::npos);
}

TEST(report, a_figure_with_nothing_to_reach_is_shown_and_neither_met_nor_missed) {
  report result;
  result.add_ratio("rpc", "key", "what", std::nullopt, compare(two_rounds(), "ours", "peer"));
  const std::string table = table_of(result);
  EXPECT_NE(table.find("shown"), std::string::npos);
  EXPECT_EQ(table.find("MISSED"), std::string::npos);
}

TEST(report, a_missing_peer_is_null_and_named) {
  report result;
  result.add_missing("rpc", "null_over_grpc", "what", 0.02, "gRPC was not found");
  EXPECT_TRUE(result.json()["rpc"]["null_over_grpc"].is_null());
  EXPECT_NE(table_of(result).find("rpc.null_over_grpc was not measured: gRPC was not found"),
            std::string::npos);
}

}  // namespace
