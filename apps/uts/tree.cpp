// SPDX-License-Identifier: Apache-2.0
#include "uts/tree.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace apps::uts {

namespace {

// As `uts` prints them for its sample trees.
constexpr published_tree trees[] = {
    {"T1",
     {.kind = shape::geometric, .seed = 19, .branching = 4, .depth_limit = 10},
     {4'130'071, 3'305'118, 10}},
    {"T1L",
     {.kind = shape::geometric, .seed = 29, .branching = 4, .depth_limit = 13},
     {102'181'082, 81'746'377, 13}},
    {"T1XL",
     {.kind = shape::geometric, .seed = 29, .branching = 4, .depth_limit = 15},
     {1'635'119'272, 1'308'100'063, 15}},
    {"T3",
     {.kind = shape::binomial, .seed = 42, .branching = 2000, .q = 0.124875, .children = 8},
     {4'112'897, 3'599'034, 1572}},
    {"T3L",
     {.kind = shape::binomial, .seed = 7, .branching = 2000, .q = 0.200014, .children = 5},
     {111'345'631, 89'076'904, 17'844}},
};

// The benchmark cuts a node's children off here, all but the root's of a binomial tree.
constexpr int cut_off_at = 100;

using words = std::array<std::uint32_t, 16>;

/// SHA-1 of a message of one block, padded already.
std::array<std::uint32_t, 5> sha1(words w) {
  constexpr std::array<std::uint32_t, 5> initial{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                                                 0xc3d2e1f0};
  auto [a, b, c, d, e] = initial;
  const auto step = [&](std::uint32_t f, std::uint32_t k, std::uint32_t word) {
    const std::uint32_t next = std::rotl(a, 5) + f + e + k + word;
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  };
  const auto word = [&](unsigned t) {
    if (t >= 16) {
      w[t % 16] = std::rotl(w[(t + 13) % 16] ^ w[(t + 8) % 16] ^ w[(t + 2) % 16] ^ w[t % 16], 1);
    }
    return w[t % 16];
  };
#pragma GCC unroll 20
  for (unsigned t = 0; t < 20; ++t) step((b & c) | (~b & d), 0x5a827999, word(t));
#pragma GCC unroll 20
  for (unsigned t = 20; t < 40; ++t) step(b ^ c ^ d, 0x6ed9eba1, word(t));
#pragma GCC unroll 20
  for (unsigned t = 40; t < 60; ++t) step((b & c) | (b & d) | (c & d), 0x8f1bbcdc, word(t));
#pragma GCC unroll 20
  for (unsigned t = 60; t < 80; ++t) step(b ^ c ^ d, 0xca62c1d6, word(t));
  return {a + initial[0], b + initial[1], c + initial[2], d + initial[3], e + initial[4]};
}

constexpr std::uint32_t end_of_message = 0x80000000;

/// From 0 to 1: the last 31 bits of the hash.
double probability(const node& n) {
  return static_cast<double>(n.hash[4] & 0x7fffffff) / 2147483648.0;
}

}  // namespace

tally& tally::operator+=(const tally& other) {
  nodes += other.nodes;
  leaves += other.leaves;
  depth = std::max(depth, other.depth);
  return *this;
}

node tree::root() const {
  words w{};  // 16 bytes of zeros and the seed
  w[4] = seed;
  w[5] = end_of_message;
  w[15] = 20 * 8;
  return {sha1(w), 0};
}

node tree::child(const node& n, int number) {
  words w{};
  std::copy(n.hash.begin(), n.hash.end(), w.begin());
  w[5] = static_cast<std::uint32_t>(number);
  w[6] = end_of_message;
  w[15] = 24 * 8;
  return {sha1(w), n.depth + 1};
}

int tree::child_count(const node& n) const {
  if (kind == shape::binomial) {
    if (n.depth == 0) return static_cast<int>(branching);
    return probability(n) < q ? children : 0;
  }
  if (n.depth >= depth_limit) return 0;
  const double p = 1 / (1 + branching);
  const auto count = static_cast<int>(std::floor(std::log(1 - probability(n)) / std::log(1 - p)));
  return std::min(count, cut_off_at);
}

std::span<const published_tree> published_trees() { return trees; }

const published_tree* find_tree(std::string_view name) {
  const auto* found = std::ranges::find(trees, name, &published_tree::name);
  return found == std::end(trees) ? nullptr : found;
}

}  // namespace apps::uts
