// SPDX-License-Identifier: Apache-2.0
#include "lu/kernel/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace apps::lu {

namespace {

/// Row after row of the whole matrix.
std::vector<double> in_rows(const layout& l, const std::vector<double>& numbers) {
  std::vector<std::size_t> first(static_cast<std::size_t>(l.processors), 0);
  for (int p = 1; p < l.processors; ++p) {
    const auto i = static_cast<std::size_t>(p);
    first[i] = first[i - 1] + l.count(p - 1);
  }
  std::vector<double> rows(l.size * l.size);
  for (std::size_t y = 0; y < l.size; ++y) {
    for (std::size_t j = 0; j < l.blocks(); ++j) {
      const std::size_t i = y / l.block;
      const std::size_t block = first[static_cast<std::size_t>(l.owner(i, j))] + l.place(i, j);
      const double* from = &numbers[block * l.block_numbers() + y % l.block * l.block];
      std::copy_n(from, l.block, &rows[y * l.size + j * l.block]);
    }
  }
  return rows;
}

/// ‖A‖: the largest sum of a row.
double norm(const layout& l, std::uint64_t seed) {
  double largest = 0;
  for (std::size_t y = 0; y < l.size; ++y) {
    double sum = 0;
    for (std::size_t x = 0; x < l.size; ++x) sum += std::abs(element(seed, l, y, x));
    largest = std::max(largest, sum);
  }
  return largest;
}

/// What is no number is the greatest.
double greater(double a, double b) { return std::isnan(b) || b > a ? b : a; }

double whole_distance(const layout& l, std::uint64_t seed, const std::vector<double>& lu) {
  const std::size_t n = l.size;
  double largest = 0;
  std::vector<double> row(n);
  for (std::size_t y = 0; y < n; ++y) {
    // Row y of L·U, whose L has ones in the diagonal.
    std::fill(row.begin(), row.end(), 0);
    for (std::size_t k = 0; k <= y; ++k) {
      const double factor = k == y ? 1 : lu[y * n + k];
      for (std::size_t x = k; x < n; ++x) row[x] += factor * lu[k * n + x];
    }
    double sum = 0;
    for (std::size_t x = 0; x < n; ++x) sum += std::abs(row[x] - element(seed, l, y, x));
    largest = greater(largest, sum);
  }
  return largest;
}

/// One number for each random vector: all are gone through together, so that elements are made
/// once.
using probed = std::array<double, probes>;

void add(probed& to, double factor, const probed& of) {
  for (std::size_t p = 0; p < probes; ++p) to[p] += factor * of[p];
}

double probed_distance(const layout& l, std::uint64_t seed, const std::vector<double>& lu) {
  const std::size_t n = l.size;
  double largest = 0;
  random_source random(seed ^ 0x10ca1u);
  std::vector<probed> x(n);
  std::vector<probed> ux(n);
  for (probed& all : x) {
    for (double& v : all) v = random.below(2) == 0 ? -1 : 1;
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i; j < n; ++j) add(ux[i], lu[i * n + j], x[j]);
  }
  for (std::size_t i = 0; i < n; ++i) {
    probed product = ux[i];
    for (std::size_t j = 0; j < i; ++j) add(product, lu[i * n + j], ux[j]);
    probed wanted{};
    for (std::size_t j = 0; j < n; ++j) add(wanted, element(seed, l, i, j), x[j]);
    for (std::size_t p = 0; p < probes; ++p) {
      largest = greater(largest, std::abs(wanted[p] - product[p]));
    }
  }
  return largest;
}

}  // namespace

residual check(const layout& l, std::uint64_t seed, const std::vector<double>& numbers) {
  const std::vector<double> lu = in_rows(l, numbers);
  const bool is_whole = l.size <= whole_max;
  const double distance = is_whole ? whole_distance(l, seed, lu) : probed_distance(l, seed, lu);
  return {distance / (norm(l, seed) * static_cast<double>(l.size) * 0x1p-52), is_whole};
}

std::optional<std::string> fault(const residual& r) {
  if (r.value <= bound) return std::nullopt;  // false of what is no number
  return fmt::format("the factors are wrong: {}", to_text(r));
}

std::string to_text(const residual& r) {
  return fmt::format("{} is {:.2e} of |A|·n·eps; allowed is {}",
                     r.is_whole ? "|A - LU|" : "the largest |Ax - L(Ux)| of eight random x",
                     r.value, bound);
}

}  // namespace apps::lu
