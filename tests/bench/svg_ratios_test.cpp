// SPDX-License-Identifier: Apache-2.0
#include "driver/svg_ratios.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace {

using namespace bench;

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

/// The `cx` of the n-th circle.
double dot(const std::string& svg, std::size_t n) {
  std::size_t at = 0;
  for (std::size_t i = 0; i <= n; ++i) at = svg.find("<circle cx=\"", at) + 12;
  return std::stod(svg.substr(at));
}

TEST(svg_ratios, a_ratio_twice_as_great_is_as_far_from_one_as_its_inverse) {
  const std::string svg = to_svg(ratio_chart{
      "a title", {}, {{"half", 0.5, 0.5, 0.5, {}}, {"same", 1, 1, 1, {}}, {"twice", 2, 2, 2, {}}}});
  EXPECT_NEAR(dot(svg, 1) - dot(svg, 0), dot(svg, 2) - dot(svg, 1), 0.2);
  EXPECT_GT(dot(svg, 1), dot(svg, 0));
}

TEST(svg_ratios, what_misses_its_aim_from_either_side_has_another_colour) {
  const std::string met = to_svg(ratio_chart{"",
                                             {},
                                             {{"at most", 1, 1, 1, 1.2, false},
                                              {"at least", 1, 1, 1, 0.8, true},
                                              {"shown", 9, 9, 9, {}}}});
  const std::string missed = to_svg(ratio_chart{"",
                                                {},
                                                {{"at most", 1, 1, 1, 0.8, false},
                                                 {"at least", 1, 1, 1, 1.2, true},
                                                 {"shown", 9, 9, 9, {}}}});
  EXPECT_EQ(times(met, "#c04000"), 0U);
  EXPECT_EQ(times(missed, "#c04000"), 4U);  // two dots and two bars
  EXPECT_EQ(times(missed, "polyline"), 2U);
}

TEST(svg_ratios, all_lies_inside_the_axis_and_words_are_escaped) {
  const std::string svg = to_svg(ratio_chart{
      "a < b", {"x & y"}, {{"tiny", 0.006, 0.0051, 0.0071, {}}, {"huge", 457, 400, 500, 0.5}}});
  EXPECT_GT(dot(svg, 0), 530);
  EXPECT_LT(dot(svg, 1), 811);
  EXPECT_EQ(times(svg, "a &lt; b"), 1U);
  EXPECT_EQ(times(svg, "x &amp; y"), 1U);
}

}  // namespace
