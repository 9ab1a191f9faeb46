// SPDX-License-Identifier: Apache-2.0
// Durations, kept so that ranks can add theirs together.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace apps {

/// Counts durations in buckets, 32 to each power of two: percentiles are exact to 1/32. A plain
/// value of 4.6 KiB, so it travels; `a + b` holds what both hold.
class histogram {
 public:
  void add(std::uint64_t nanoseconds) { ++counts_[bucket(nanoseconds)]; }

  histogram& operator+=(const histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    return *this;
  }
  friend histogram operator+(histogram a, const histogram& b) { return a += b; }

  std::uint64_t count() const {
    std::uint64_t all = 0;
    for (std::uint32_t c : counts_) all += c;
    return all;
  }

  /// The duration in nanoseconds that `fraction` of all are not above; 0 when there are none.
  double percentile(double fraction) const {
    const double wanted = fraction * static_cast<double>(count());
    double seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] == 0) continue;
      seen += counts_[i];
      if (seen >= wanted) return (lower_bound(i) + lower_bound(i + 1)) / 2;
    }
    return 0;
  }

 private:
  static constexpr unsigned sub_bits = 5;  // 32 buckets to a power of two
  static constexpr unsigned octaves = 36;  // up to 2^40 ns, 18 minutes

  static constexpr std::size_t bucket(std::uint64_t v) {
    if (v < (1u << sub_bits)) return v;
    const unsigned shift = static_cast<unsigned>(std::bit_width(v)) - 1 - sub_bits;
    const std::size_t i = (std::size_t{shift} << sub_bits) + (v >> shift);
    return i < std::tuple_size_v<decltype(counts_)> ? i : std::tuple_size_v<decltype(counts_)> - 1;
  }
  static constexpr double lower_bound(std::size_t i) {
    const std::size_t octave = i >> sub_bits;
    if (octave <= 1) return static_cast<double>(i);
    const std::size_t within = (i & ((1u << sub_bits) - 1)) | (1u << sub_bits);
    return static_cast<double>(within << (octave - 1));
  }

  std::array<std::uint32_t, (octaves << sub_bits)> counts_{};
};

}  // namespace apps
