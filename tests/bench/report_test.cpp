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
