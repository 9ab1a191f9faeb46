// SPDX-License-Identifier: Apache-2.0
// Where the points of the relaxation are, and that its check would notice a value that is wrong.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "sor/kernel/grid.hpp"

namespace {

namespace sor = apps::sor;

/// Sizes that blocks fit into and do not, and fewer blocks than processors.
constexpr sor::settings shapes[] = {{.size = 16, .block = 4},
                                    {.size = 17, .block = 3},
                                    {.size = 24, .block = 16},
                                    {.size = 5, .block = 1},
                                    {.size = 7, .block = 7}};

TEST(sor, each_point_has_a_place_of_its_own_on_one_rank) {
  for (const sor::settings& s : shapes) {
    for (const int ranks : {1, 2, 3, 4, 6, 8}) {
      const sor::layout where(s, ranks);
      std::set<std::pair<std::size_t, std::size_t>> taken;
      for (std::uint32_t row = 0; row < s.size; ++row) {
        for (std::uint32_t column = 0; column < s.size; ++column) {
          const std::size_t rank = where.rank_of(row, column);
          const std::size_t place = where.place_of(row, column);
          ASSERT_LT(rank, static_cast<std::size_t>(ranks));
          ASSERT_LT(place, where.count_at(static_cast<int>(rank)));
          ASSERT_TRUE(taken.emplace(rank, place).second);
        }
      }
      std::size_t places = 0;
      for (int r = 0; r < ranks; ++r) places += where.count_at(r);
      EXPECT_EQ(places, taken.size());
    }
  }
}

TEST(sor, the_rows_and_columns_of_a_rank_are_the_points_that_it_has) {
  for (const sor::settings& s : shapes) {
    const sor::layout where(s, 6);
    for (int rank = 0; rank < 6; ++rank) {
      std::size_t place = 0;
      for (const std::uint32_t row : where.rows_at(rank)) {
        for (const std::uint32_t column : where.columns_at(rank)) {
          EXPECT_EQ(where.rank_of(row, column), static_cast<std::size_t>(rank));
          EXPECT_EQ(where.place_of(row, column), place++);
        }
      }
    }
  }
}

TEST(sor, neighbours_are_on_one_rank_but_at_the_edges_of_blocks) {
  const sor::settings s{.size = 30, .block = 4};
  const sor::layout where(s, 4);
  ASSERT_EQ(where.processor_rows(), 2u);
  ASSERT_EQ(where.processor_columns(), 2u);
  for (std::uint32_t row = 0; row < s.size; ++row) {
    for (std::uint32_t column = 0; column + 1 < s.size; ++column) {
      const bool at_edge = column % s.block == s.block - 1;
      EXPECT_EQ(where.rank_of(row, column) != where.rank_of(row, column + 1), at_edge);
      EXPECT_EQ(where.rank_of(column, row) != where.rank_of(column + 1, row), at_edge);
    }
  }
}

TEST(sor, processors_form_the_grid_most_like_a_square) {
  const auto shape = [](int ranks) {
    const sor::layout where({.size = 8, .block = 1}, ranks);
    return std::pair(where.processor_rows(), where.processor_columns());
  };
  EXPECT_EQ(shape(2), std::pair(1u, 2u));
  EXPECT_EQ(shape(7), std::pair(1u, 7u));
  EXPECT_EQ(shape(12), std::pair(3u, 4u));
  EXPECT_EQ(shape(64), std::pair(8u, 8u));
}

TEST(sor, the_border_stays_and_the_interior_depends_on_each_iteration) {
  sor::settings s{.size = 9, .block = 3, .iterations = 20};
  const std::vector<double> after = sor::compute_alone(s);
  ++s.iterations;
  const std::vector<double> one_more = sor::compute_alone(s);
  for (std::uint32_t row = 0; row < s.size; ++row) {
    for (std::uint32_t column = 0; column < s.size; ++column) {
      const std::size_t at = std::size_t{row} * s.size + column;
      if (sor::is_border(s, row) || sor::is_border(s, column)) {
        EXPECT_EQ(after[at], sor::first_value(s, row, column));
      } else {
        EXPECT_NE(after[at], one_more[at]);
      }
    }
  }
}

}  // namespace
