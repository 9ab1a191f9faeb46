// SPDX-License-Identifier: Apache-2.0
#include "nine/kernel/difference.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace apps::nine {
namespace {

/// Such as "[3][14]".
std::string place(std::initializer_list<std::size_t> extents, std::size_t index) {
  std::string text;
  for (auto extent = std::rbegin(extents); extent != std::rend(extents); ++extent) {
    text.insert(0, fmt::format("[{}]", index % *extent));
    index /= *extent;
  }
  return text;
}

}  // namespace

std::string difference(std::string_view what, std::initializer_list<std::size_t> extents,
                       std::span<const double> result, std::span<const double> expected,
                       double tolerance) {
  if (result.size() != expected.size()) {
    return fmt::format("{} has {} values, and the reference {}", what, result.size(),
                       expected.size());
  }
  std::size_t count = 0;
  std::size_t worst = 0;
  double most = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    double apart = std::abs(result[i] - expected[i]);
    if (std::isnan(apart)) apart = std::numeric_limits<double>::infinity();
    if (apart > tolerance) ++count;
    if (apart > most) {
      most = apart;
      worst = i;
    }
  }
  if (count == 0) return {};
  return fmt::format(
      "{}: {} of {} values differ from the reference by more than {}, most of all {}, which is {} "
      "in place of {}",
      what, count, result.size(), tolerance, place(extents, worst), result[worst], expected[worst]);
}

}  // namespace apps::nine
