// SPDX-License-Identifier: Apache-2.0
// Messages that no rank sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace simulated {

/// Messages that no rank of the job has sent, as if memory that ranks share were overwritten: those
/// that are on their way, with other bytes, of other lengths, twice, or where they do not belong.
class strangers {
 public:
  explicit strangers(std::uint64_t seed) : chance_(seed) {}

  /// Whether the next delivery is of such a message.
  bool come() { return chance_() % 16 == 0; }
  bool comes_from_elsewhere() { return chance_() % 8 == 0; }
  bool comes_twice() { return chance_() % 8 == 0; }
  int any_rank(int ranks) { return static_cast<int>(chance_() % static_cast<unsigned>(ranks)); }
  void change(std::vector<std::byte>& message);

  std::uint64_t messages = 0;

 private:
  std::mt19937_64 chance_;
};

}  // namespace simulated
