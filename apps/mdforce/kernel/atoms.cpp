// SPDX-License-Identifier: Apache-2.0
#include "mdforce/kernel/atoms.hpp"

#include <algorithm>
#include <numbers>
#include <numeric>
#include <utility>

#include "common/random.hpp"

namespace apps::mdforce {
namespace {

constexpr double volume_of_atom = 18;

/// Of the ball that so many atoms fill.
double radius_of(double atoms) {
  return std::cbrt(3 * atoms * volume_of_atom / (4 * std::numbers::pi));
}

/// Of length `bond`, all directions alike.
vec random_bond(random_source& random) {
  for (;;) {
    vec d;
    for (double& c : d.at) c = 2 * random.fraction() - 1;
    const double l2 = square(d);
    if (l2 > 0.01 && l2 < 1) return bond / std::sqrt(l2) * d;
  }
}

/// What rank `r` begins with, of things that are dealt out in order.
std::size_t first_at(std::size_t things, int ranks, int r) {
  return things * static_cast<std::size_t>(r) / static_cast<std::size_t>(ranks);
}

/// `dealt`: all atoms, those of rank 0 first.
layout layout_of(std::span<const std::uint32_t> dealt, int ranks) {
  layout l;
  l.owner.resize(dealt.size());
  l.place.resize(dealt.size());
  for (int r = 0; r < ranks; ++r) {
    const std::size_t first = first_at(dealt.size(), ranks, r);
    const auto of_rank = dealt.subspan(first, first_at(dealt.size(), ranks, r + 1) - first);
    auto& atoms = l.atoms.emplace_back(of_rank.begin(), of_rank.end());
    std::ranges::sort(atoms);
    for (std::uint32_t place = 0; place < atoms.size(); ++place) {
      l.owner[atoms[place]] = r;
      l.place[atoms[place]] = place;
    }
  }
  return l;
}

/// Orders `atoms`, which are those of the ranks [first, last) of `ranks`, by rank.
void bisect_range(std::span<const vec> positions, std::span<std::uint32_t> atoms, int first,
                  int last, int ranks) {
  if (last - first <= 1) return;
  vec low = positions[atoms.front()];
  vec high = low;
  for (const std::uint32_t i : atoms) {
    for (std::size_t x = 0; x < 3; ++x) {
      low[x] = std::min(low[x], positions[i][x]);
      high[x] = std::max(high[x], positions[i][x]);
    }
  }
  const vec sides = high - low;
  const auto longest =
      static_cast<std::size_t>(std::ranges::max_element(sides.at) - sides.at.begin());
  const int middle = first + (last - first) / 2;
  const std::size_t cut =
      first_at(positions.size(), ranks, middle) - first_at(positions.size(), ranks, first);
  std::ranges::nth_element(atoms, atoms.begin() + static_cast<std::ptrdiff_t>(cut), {},
                           [&](std::uint32_t i) { return std::pair(positions[i][longest], i); });
  bisect_range(positions, atoms.first(cut), first, middle, ranks);
  bisect_range(positions, atoms.subspan(cut), middle, last, ranks);
}

std::vector<std::uint32_t> all_atoms(std::size_t count) {
  std::vector<std::uint32_t> atoms(count);
  std::iota(atoms.begin(), atoms.end(), 0u);
  return atoms;
}

}  // namespace

std::vector<vec> make_chain(const settings& s) {
  constexpr int directions = 30;
  // Atoms lie in the ball that those before them fill, or just outside where no room is left in it.
  const double reach = 1.5 * radius_of(s.atoms) + 10;
  grid taken(vec{{-reach, -reach, -reach}}, vec{{reach, reach, reach}}, clearance);
  std::vector<vec> chain{vec{}};
  taken.add(chain.back());
  random_source random(s.seed);

  const auto is_free = [&](const vec& position) {
    bool free = length(position) < reach;
    taken.near(position, [&](std::uint32_t i) {
      if (i + 1 != chain.size() && square(position - chain[i]) < clearance * clearance) {
        free = false;
      }
    });
    return free;
  };
  while (chain.size() < s.atoms) {
    const double surface = radius_of(static_cast<double>(chain.size()));
    vec next;
    double next_off = reach;
    for (int i = 0; i < directions; ++i) {
      const vec candidate = chain.back() + random_bond(random);
      const double off = std::abs(length(candidate) - surface);
      if (off < next_off && is_free(candidate)) {
        next = candidate;
        next_off = off;
      }
    }
    if (next_off < reach) {
      chain.push_back(next);
      taken.add(next);
      continue;
    }
    // A dead end, mostly a short one: go back by n or more atoms every n-th time.
    const auto back = static_cast<std::size_t>(1 / (1 - random.fraction()));
    for (std::size_t i = std::min(back, chain.size() - 1); i > 0; --i) {
      chain.pop_back();
      taken.remove_last();
    }
  }
  return chain;
}

layout deal_at_random(std::size_t atoms, int ranks, std::uint64_t seed) {
  std::vector<std::uint32_t> dealt = all_atoms(atoms);
  random_source random(mix64(seed));
  for (std::size_t i = atoms; i > 1; --i) std::swap(dealt[i - 1], dealt[random.below(i)]);
  return layout_of(dealt, ranks);
}

layout bisect(std::span<const vec> positions, int ranks) {
  std::vector<std::uint32_t> dealt = all_atoms(positions.size());
  bisect_range(positions, dealt, 0, ranks, ranks);
  return layout_of(dealt, ranks);
}

layout make_layout(const settings& s, std::span<const vec> positions, int ranks) {
  return s.layout == "random" ? deal_at_random(positions.size(), ranks, s.seed)
                              : bisect(positions, ranks);
}

grid::grid(const vec& low, const vec& high, double side) : low_(low) {
  constexpr double most = 128;  // Cubes that nobody is in cost time, too.
  for (std::size_t x = 0; x < 3; ++x) {
    const double length = high[x] - low[x];
    count_[x] = static_cast<std::size_t>(std::clamp(std::floor(length / side), 1.0, most));
    per_cube_[x] = length > 0 ? static_cast<double>(count_[x]) / length : 0;
  }
  last_.assign(count_[0] * count_[1] * count_[2], none);
}

void grid::add(const vec& position) {
  const std::size_t c = index(cube_at(position));
  before_.push_back(last_[c]);
  cube_of_.push_back(c);
  last_[c] = static_cast<std::uint32_t>(before_.size() - 1);
}

void grid::remove_last() {
  last_[cube_of_.back()] = before_.back();
  before_.pop_back();
  cube_of_.pop_back();
}

grid::cube grid::cube_at(const vec& position) const {
  cube c;
  for (std::size_t x = 0; x < 3; ++x) {
    const double at = (position[x] - low_[x]) * per_cube_[x];
    c[x] = static_cast<std::size_t>(std::clamp(at, 0.0, static_cast<double>(count_[x] - 1)));
  }
  return c;
}

}  // namespace apps::mdforce
