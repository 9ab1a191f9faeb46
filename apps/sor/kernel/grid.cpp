// SPDX-License-Identifier: Apache-2.0
#include "sor/kernel/grid.hpp"

#include "common/random.hpp"

namespace apps::sor {
namespace {

std::pair<std::uint32_t, std::uint32_t> nearly_square(int ranks) {
  const auto all = static_cast<std::uint32_t>(ranks);
  std::uint32_t rows = 1;
  for (std::uint32_t divisor = 1; divisor * divisor <= all; ++divisor) {
    if (all % divisor == 0) rows = divisor;
  }
  return {rows, all / rows};
}

}  // namespace

axis::axis(std::uint32_t size, std::uint32_t block, std::uint32_t processors)
    : indices(processors) {
  for (std::uint32_t i = 0; i < size; ++i) {
    owner.push_back(i / block % processors);
    place.push_back(static_cast<std::uint32_t>(indices[owner.back()].size()));
    indices[owner.back()].push_back(i);
  }
}

layout::layout(const settings& s, int ranks) : layout(s, nearly_square(ranks)) {}
layout::layout(const settings& s, std::pair<std::uint32_t, std::uint32_t> processors)
    : rows_(s.size, s.block, processors.first), columns_(s.size, s.block, processors.second) {}

double first_value(const settings& s, std::uint32_t row, std::uint32_t column) {
  return random_source(mix64(s.seed) + std::uint64_t{row} * s.size + column).fraction();
}

std::vector<double> compute_alone(const settings& s) {
  const std::size_t size = s.size;
  std::vector<double> old;
  old.reserve(size * size);
  for (std::uint32_t row = 0; row < s.size; ++row) {
    for (std::uint32_t column = 0; column < s.size; ++column) {
      old.push_back(first_value(s, row, column));
    }
  }
  std::vector<double> next = old;
  for (std::uint32_t iteration = 0; iteration < s.all_iterations(); ++iteration) {
    for (std::size_t row = 1; row + 1 < size; ++row) {
      for (std::size_t at = row * size + 1; at < (row + 1) * size - 1; ++at) {
        next[at] = relaxed(old[at], old[at - size], old[at - 1], old[at + 1], old[at + size]);
      }
    }
    std::swap(old, next);
  }
  return old;
}

}  // namespace apps::sor
