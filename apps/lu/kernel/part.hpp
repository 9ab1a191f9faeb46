// SPDX-License-Identifier: Apache-2.0
// What each of P processors has of a matrix in blocks, and what it does with it in each step.
// Blocks are dealt out in two dimensions, as the squares of a carpet: those of a processor are in
// every R-th row and every C-th column.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/random.hpp"
#include "lu/kernel/blocks.hpp"

namespace apps::lu {

struct layout {
  std::size_t size = 512;  ///< Rows and columns of the matrix.
  std::size_t block = 16;  ///< Rows and columns of a block.
  int processors = 1;

  std::size_t blocks() const { return size / block; }
  std::size_t block_numbers() const { return block * block; }
  /// Of the grid of processors: as square as their number allows, rather wide than high.
  int rows() const {
    int r = 1;
    for (int i = 2; i * i <= processors; ++i) {
      if (processors % i == 0) r = i;
    }
    return r;
  }
  int columns() const { return processors / rows(); }
  int owner(std::size_t i, std::size_t j) const { return at(row_of(i), column_of(j)); }
  int at(int row, int column) const { return row * columns() + column; }
  int row_of(std::size_t i) const { return static_cast<int>(i % static_cast<std::size_t>(rows())); }
  int column_of(std::size_t j) const {
    return static_cast<int>(j % static_cast<std::size_t>(columns()));
  }

  /// Blocks of processor p, and the place of one among those of its owner.
  std::size_t count(int p) const { return high(p) * wide(p); }
  std::size_t place(std::size_t i, std::size_t j) const {
    const auto r = static_cast<std::size_t>(rows());
    const auto c = static_cast<std::size_t>(columns());
    return i / r * wide(owner(i, j)) + j / c;
  }

  /// What is wrong with it, in a sentence.
  std::optional<std::string> fault() const {
    if (block % 4 != 0) {
      return "--block must be a multiple of 4, and it is " + std::to_string(block);
    }
    if (size % block != 0) {
      return "--size " + std::to_string(size) + " is not a multiple of --block " +
             std::to_string(block);
    }
    return std::nullopt;
  }

 private:
  std::size_t high(int p) const { return share_of(p / columns(), rows()); }
  std::size_t wide(int p) const { return share_of(p % columns(), columns()); }
  std::size_t share_of(int which, int of) const {
    const auto w = static_cast<std::size_t>(which);
    const auto n = static_cast<std::size_t>(of);
    return (blocks() + n - 1 - w) / n;
  }
};

/// An element of the matrix, the same on every processor. The diagonal is larger than what else is
/// in a row, so that no pivots need be looked for.
inline double element(std::uint64_t seed, const layout& l, std::size_t i, std::size_t j) {
  const double random = static_cast<double>(mix64(seed + i * l.size + j) >> 11) * 0x1p-52 - 1;
  return i == j ? static_cast<double>(l.size) + random : random;
}

/// One processor's, in memory of whoever moves the data.
class part {
 public:
  /// `numbers` has room for all blocks of processor `me`. Requires: no fault().
  part(const layout& l, int me, double* numbers)
      : layout_(l),
        row_(me / l.columns()),
        column_(me % l.columns()),
        numbers_(numbers),
        of_column_(l.blocks()),
        of_row_(l.blocks()) {}

  const layout& shape() const { return layout_; }
  bool is_mine(std::size_t i, std::size_t j) const {
    return layout_.row_of(i) == row_ && layout_.column_of(j) == column_;
  }
  /// Requires: is_mine(i, j).
  double* at(std::size_t i, std::size_t j) const {
    return numbers_ + layout_.place(i, j) * layout_.block_numbers();
  }

  void fill(std::uint64_t seed) {
    for_mine([&](std::size_t i, std::size_t j) {
      double* to = at(i, j);
      for (std::size_t y = i * layout_.block; y < (i + 1) * layout_.block; ++y) {
        for (std::size_t x = j * layout_.block; x < (j + 1) * layout_.block; ++x) {
          *to++ = element(seed, layout_, y, x);
        }
      }
    });
  }

  // ---- Who takes part in step k ---------------------------------------------------------------

  /// The first row (column) after k that is mine; blocks() or more when there is none.
  std::size_t my_next_row(std::size_t k) const { return next(k, row_, layout_.rows()); }
  std::size_t my_next_column(std::size_t k) const { return next(k, column_, layout_.columns()); }
  std::size_t row_stride() const { return static_cast<std::size_t>(layout_.rows()); }
  std::size_t column_stride() const { return static_cast<std::size_t>(layout_.columns()); }
  bool has_column(std::size_t k) const { return layout_.column_of(k) == column_; }
  bool has_row(std::size_t k) const { return layout_.row_of(k) == row_; }
  bool has_inner(std::size_t k) const {
    return my_next_row(k) < layout_.blocks() && my_next_column(k) < layout_.blocks();
  }
  /// Whether sub-step 2 has something to do here.
  bool has_border(std::size_t k) const {
    return (has_column(k) && my_next_row(k) < layout_.blocks()) ||
           (has_row(k) && my_next_column(k) < layout_.blocks());
  }
  /// Who else needs my block (i, j) of column or row k: of a column my row of processors, of a row
  /// my column of them, as far as they have something after k; of the pivot block both.
  /// visit(rank).
  template <class Visit>
  void for_consumers(std::size_t k, std::size_t i, std::size_t j, Visit visit) const {
    if (i == k) {
      for (int round = 1; round < layout_.rows(); ++round) {
        const int r = (row_ + round) % layout_.rows();
        if (next(k, r, layout_.rows()) < layout_.blocks()) visit(layout_.at(r, column_));
      }
    }
    if (j == k) {
      for (int round = 1; round < layout_.columns(); ++round) {
        const int c = (column_ + round) % layout_.columns();
        if (next(k, c, layout_.columns()) < layout_.blocks()) visit(layout_.at(row_, c));
      }
    }
  }
  /// Blocks (i, k) and (k, j) that sub-step 3 of step k needs here and that are others': visit(i,
  /// j).
  template <class Visit>
  void for_missing(std::size_t k, Visit visit) const {
    if (!has_inner(k)) return;
    if (!has_column(k)) {
      for (std::size_t i = my_next_row(k); i < layout_.blocks(); i += row_stride()) visit(i, k);
    }
    if (!has_row(k)) {
      for (std::size_t j = my_next_column(k); j < layout_.blocks(); j += column_stride()) {
        visit(k, j);
      }
    }
  }

  /// My blocks of column k, and of row k: visit(i, j).
  template <class Visit>
  void for_border_column(std::size_t k, Visit visit) const {
    if (!has_column(k)) return;
    for (std::size_t i = my_next_row(k); i < layout_.blocks(); i += row_stride()) visit(i, k);
  }
  template <class Visit>
  void for_border_row(std::size_t k, Visit visit) const {
    if (!has_row(k)) return;
    for (std::size_t j = my_next_column(k); j < layout_.blocks(); j += column_stride()) visit(k, j);
  }
  /// Both, the column first.
  template <class Visit>
  void for_border(std::size_t k, Visit visit) const {
    for_border_column(k, visit);
    for_border_row(k, visit);
  }

  // ---- What there is to compute ---------------------------------------------------------------

  /// Sub-step 1, of the pivot's owner.
  void factor_pivot(std::size_t k) { factor(at(k, k), layout_.block); }

  /// Sub-step 2: my blocks of column and row k; done(i, j) after each.
  template <class Done>
  void solve_border_column(std::size_t k, const double* pivot, Done done) {
    for_border_column(k, [&](std::size_t i, std::size_t j) {
      solve_column(at(i, j), pivot, layout_.block);
      done(i, j);
    });
  }
  template <class Done>
  void solve_border_row(std::size_t k, const double* pivot, Done done) {
    for_border_row(k, [&](std::size_t i, std::size_t j) {
      solve_row(at(i, j), pivot, layout_.block);
      done(i, j);
    });
  }
  template <class Done>
  void solve_border(std::size_t k, const double* pivot, Done done) {
    solve_border_column(k, pivot, done);
    solve_border_row(k, pivot, done);
  }

  /// Where block (i, k) or (k, j) is while sub-step 3 of step k needs it.
  void use(std::size_t k, std::size_t i, std::size_t j, const double* block) {
    (i == k ? of_row_[j] : of_column_[i]) = block;
  }
  void use_own_border(std::size_t k) {
    for_border(k, [&](std::size_t i, std::size_t j) { use(k, i, j, at(i, j)); });
  }

  /// Sub-step 3: my blocks after row and column k; between() after each sixteen of them.
  template <class Between>
  void update_inner(std::size_t k, Between between) {
    unsigned updated = 0;
    for (std::size_t i = my_next_row(k); i < layout_.blocks(); i += row_stride()) {
      for (std::size_t j = my_next_column(k); j < layout_.blocks(); j += column_stride()) {
        update_one(i, j);
        if (++updated % 16 == 0) between();
      }
    }
  }
  /// The same in two parts: the next pivot block, when it is mine, and then all others.
  void update_next_pivot(std::size_t k) {
    if (k + 1 < layout_.blocks() && is_mine(k + 1, k + 1)) update_one(k + 1, k + 1);
  }
  void update_others(std::size_t k) {
    for (std::size_t i = my_next_row(k); i < layout_.blocks(); i += row_stride()) {
      for (std::size_t j = my_next_column(k); j < layout_.blocks(); j += column_stride()) {
        if (i != k + 1 || j != k + 1) update_one(i, j);
      }
    }
  }

  /// Computes as in a factorization, on a matrix of its own that is 1 and factored already. What
  /// this takes is the computing without the rest.
  static void compute_alone(const layout& l, int me) {
    std::vector<double> numbers(l.count(me) * l.block_numbers());
    part p(l, me, numbers.data());
    std::vector<double> one(l.block_numbers());
    for (std::size_t i = 0; i < l.block; ++i) one[i * l.block + i] = 1;
    for (std::size_t k = 0; k < l.blocks(); ++k) {
      if (p.is_mine(k, k)) {
        std::copy(one.begin(), one.end(), p.at(k, k));
        p.factor_pivot(k);
      }
      p.solve_border(k, one.data(), [](std::size_t, std::size_t) {});
      p.use_own_border(k);
      p.for_missing(k, [&](std::size_t i, std::size_t j) { p.use(k, i, j, p.numbers_); });
      p.update_inner(k, [] {});
    }
  }

 private:
  std::size_t next(std::size_t k, int which, int of) const {
    const auto n = static_cast<std::size_t>(of);
    return k + 1 + (static_cast<std::size_t>(which) + n - (k + 1) % n) % n;
  }
  void update_one(std::size_t i, std::size_t j) {
    update(at(i, j), of_column_[i], of_row_[j], layout_.block);
  }
  template <class Visit>
  void for_mine(Visit visit) {
    for (std::size_t i = static_cast<std::size_t>(row_); i < layout_.blocks(); i += row_stride()) {
      for (std::size_t j = static_cast<std::size_t>(column_); j < layout_.blocks();
           j += column_stride()) {
        visit(i, j);
      }
    }
  }

  layout layout_;
  int row_;
  int column_;
  double* numbers_;
  std::vector<const double*> of_column_;
  std::vector<const double*> of_row_;
};

}  // namespace apps::lu
