// SPDX-License-Identifier: Apache-2.0
// Which balancers of the 8×8 bitonic counting network are joined, as a table.
#pragma once

#include <algorithm>
#include <array>

namespace apps {

/// The bitonic wiring, as a table. A wire is followed through balancers: the wire that enters at a
/// balancer's top leaves at its top.
class wiring {
 public:
  static constexpr int width = 8;
  static constexpr int stage_count = 6;
  static constexpr int per_stage = width / 2;

  struct joint {
    int top, bottom;  // Wires.
  };
  struct stage {
    std::array<joint, per_stage> joints{};
    int count = 0;
  };

  constexpr wiring() {
    std::array<int, width> wires{};
    for (int i = 0; i < width; ++i) wires[i] = i;
    count_on(wires.data(), width);
    outputs_ = wires;
  }

  constexpr const std::array<stage, stage_count>& stages() const { return stages_; }
  /// The wires in the order of the counters at their ends.
  constexpr const std::array<int, width>& outputs() const { return outputs_; }

 private:
  /// Bitonic[n]: two Bitonic[n/2] side by side, then Merger[n].
  constexpr void count_on(int* wires, int n) {
    if (n == 1) return;
    count_on(wires, n / 2);
    count_on(wires + n / 2, n / 2);
    merge(wires, n);
  }

  /// Merger[n] of the sequences x (first half) and y (second half): one Merger[n/2] takes x's even
  /// and y's odd wires, another the rest; a last row of balancers joins their outputs pairwise.
  constexpr void merge(int* wires, int n) {
    const int half = n / 2;
    if (half > 1) {
      std::array<int, width> one{}, other{};
      for (int i = 0; i < half; i += 2) {
        one[i / 2] = wires[i];
        other[i / 2] = wires[i + 1];
        one[(half + i) / 2] = wires[half + i + 1];
        other[(half + i) / 2] = wires[half + i];
      }
      merge(one.data(), half);
      merge(other.data(), half);
      for (int i = 0; i < half; ++i) {
        wires[2 * i] = one[i];
        wires[2 * i + 1] = other[i];
      }
    }
    for (int i = 0; i < n; i += 2) join(wires[i], wires[i + 1]);
  }

  constexpr void join(int top, int bottom) {
    const int at = std::max(depth_[top], depth_[bottom]);
    depth_[top] = depth_[bottom] = at + 1;
    stages_[at].joints[stages_[at].count++] = {top, bottom};
  }

  std::array<stage, stage_count> stages_{};
  std::array<int, width> depth_{};
  std::array<int, width> outputs_{};
};

inline constexpr wiring bitonic;
static_assert(std::ranges::all_of(bitonic.stages(), [](const wiring::stage& s) {
  return s.count == wiring::per_stage;
}));

}  // namespace apps
