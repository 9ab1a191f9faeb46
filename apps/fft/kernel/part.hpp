// SPDX-License-Identifier: Apache-2.0
// What each of P processors has of a transform of n points, and which of it goes where in between.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/random.hpp"
#include "fft/kernel/butterfly.hpp"

namespace apps::fft {

struct layout {
  int log2_points = 20;
  int processors = 1;

  std::size_t points() const { return std::size_t{1} << log2_points; }
  std::size_t parts() const { return static_cast<std::size_t>(processors); }
  /// n/P: what a processor has.
  std::size_t share() const { return points() / parts(); }
  /// n/P²: what a processor sends to each.
  std::size_t chunk() const { return share() / parts(); }

  /// What is wrong with it, in a sentence.
  std::optional<std::string> fault() const {
    if ((processors & (processors - 1)) != 0) {
      return "the number of ranks must be a power of two, and it is " + std::to_string(processors);
    }
    if (chunk() == 0) {
      return std::to_string(processors) + " ranks need 2^" +
             std::to_string(2 * (std::bit_width(parts()) - 1)) + " points at least (--log2)";
    }
    return std::nullopt;
  }
  /// The bin that element i of processor p's block ends as.
  std::size_t bin(int p, std::size_t i) const {
    const std::size_t row =
        static_cast<std::size_t>(p) * share() + i % chunk() * parts() + i / chunk();
    return reversed(row, log2_points);
  }
};

/// The input: point `i` of the signal, the same on every processor.
inline complex signal(std::uint64_t seed, std::size_t i) {
  const auto number = [&](std::uint64_t k) {
    return static_cast<double>(mix64(seed + k) >> 11) * 0x1p-52 - 1;
  };
  return {number(2 * i), number(2 * i + 1)};
}

/// One processor's, in memory of whoever moves the data.
class part {
 public:
  /// `rows` and `block` have room for share() points each; they are the same when there is one
  /// processor only, which has nothing to move. Requires: no fault().
  part(const layout& l, int me, complex* rows, complex* block)
      : layout_(l),
        me_(me),
        rows_(rows),
        block_(block),
        steps_(l.share(), static_cast<double>(me) / l.processors) {}

  const layout& shape() const { return layout_; }

  /// Phase 0: the signal, dealt out as cards are.
  void fill(std::uint64_t seed) {
    for (std::size_t m = 0; m < layout_.share(); ++m) {
      rows_[m] = signal(seed, static_cast<std::size_t>(me_) + m * layout_.parts());
    }
  }
  /// Phase 1: log n - log P steps on the cyclic layout.
  void first_steps() { steps_.run(rows_); }
  /// Phase 2: what processor `to` gets from here, and where what comes from `from` belongs.
  const complex* outgoing(int to) const {
    return rows_ + static_cast<std::size_t>(to) * layout_.chunk();
  }
  complex* incoming(int from) { return block_ + static_cast<std::size_t>(from) * layout_.chunk(); }
  void keep_own() {
    if (rows_ != block_) std::copy_n(outgoing(me_), layout_.chunk(), incoming(me_));
  }
  /// Whom to send to in round 1 … P-1: all begin with another one.
  int partner(int round) const { return (me_ + round) % layout_.processors; }
  /// Phase 3: log P steps on the blocked layout.
  void last_steps() { blocked_steps(block_, layout_.parts(), layout_.chunk()); }

 private:
  layout layout_;
  int me_;
  complex* rows_;
  complex* block_;
  cyclic_steps steps_;
};

}  // namespace apps::fft
