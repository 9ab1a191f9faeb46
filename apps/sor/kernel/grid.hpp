// SPDX-License-Identifier: Apache-2.0
// Successive over-relaxation on a square grid: each point of the interior becomes a mean of itself
// and its four neighbours, all at once; the border stays as it is. Blocks of the grid are dealt out
// to a grid of processors, in both directions in turn (block-cyclic).
// Source: Plevyak, Karamcheti, Zhang and Chien, §4.3.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace apps::sor {

struct settings {
  std::uint32_t size = 1024;  ///< Rows, and columns.
  std::uint32_t block = 64;   ///< Rows and columns of a block; those at the end may be smaller.
  std::uint32_t iterations = 10;
  std::uint32_t warm_up = 1;  ///< Further iterations before those, which are not measured.
  std::uint64_t seed = 1;

  std::uint32_t all_iterations() const { return warm_up + iterations; }
};

/// Rows, or columns, dealt out to a row of processors.
struct axis {
  axis(std::uint32_t size, std::uint32_t block, std::uint32_t processors);

  std::vector<std::uint32_t> owner;                 ///< Of each index.
  std::vector<std::uint32_t> place;                 ///< Of each index, among those of its owner.
  std::vector<std::vector<std::uint32_t>> indices;  ///< Of each processor, in order.
};

/// Where each point is: a rank, and a place in its array, row after row.
class layout {
 public:
  /// The processors form the grid that is most like a square.
  layout(const settings& s, int ranks);

  std::uint32_t processor_rows() const { return static_cast<std::uint32_t>(rows_.indices.size()); }
  std::uint32_t processor_columns() const {
    return static_cast<std::uint32_t>(columns_.indices.size());
  }
  std::size_t rank_of(std::uint32_t row, std::uint32_t column) const {
    return std::size_t{rows_.owner[row]} * processor_columns() + columns_.owner[column];
  }
  std::size_t place_of(std::uint32_t row, std::uint32_t column) const {
    return std::size_t{rows_.place[row]} * columns_.indices[columns_.owner[column]].size() +
           columns_.place[column];
  }
  const std::vector<std::uint32_t>& rows_at(int rank) const {
    return rows_.indices[static_cast<std::size_t>(rank) / processor_columns()];
  }
  const std::vector<std::uint32_t>& columns_at(int rank) const {
    return columns_.indices[static_cast<std::size_t>(rank) % processor_columns()];
  }
  std::size_t count_at(int rank) const { return rows_at(rank).size() * columns_at(rank).size(); }

 private:
  layout(const settings& s, std::pair<std::uint32_t, std::uint32_t> processors);

  axis rows_;
  axis columns_;
};

inline bool is_border(const settings& s, std::uint32_t index) {
  return index == 0 || index == s.size - 1;
}

/// The value that a point begins with: random, in [0, 1).
double first_value(const settings& s, std::uint32_t row, std::uint32_t column);

/// The new value of a point.
inline double relaxed(double old, double north, double west, double east, double south) {
  // All points are computed from old values, where more than 1 would not converge.
  constexpr double relaxation = 0.9;
  return old + relaxation * ((north + west + east + south) / 4 - old);
}

/// All points after all iterations, row after row, by one loop.
std::vector<double> compute_alone(const settings& s);

}  // namespace apps::sor
