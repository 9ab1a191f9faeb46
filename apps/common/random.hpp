// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same in every run and on every rank.
#pragma once

#include <cstdint>
#include <string_view>

namespace apps {

/// Scatters the bits of `x` (the finaliser of SplitMix64): a hash of an integer.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A hash of a text that is the same on every machine (FNV-1a, then mixed).
constexpr std::uint64_t hash_text(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix64(h);
}

/// SplitMix64: a plain value, so a stream of random numbers can travel.
class random_source {
 public:
  constexpr explicit random_source(std::uint64_t seed) : state_(mix64(seed)) {}

  constexpr std::uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15u); }
  /// In [0, bound). Requires: bound > 0, and far below 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  /// In [0, 1).
  constexpr double fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace apps
