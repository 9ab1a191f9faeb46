// SPDX-License-Identifier: Apache-2.0
// A rank's part of the weight of a finish scope. The scope's home mints weight. Every message takes
// some along, which its receiver then holds. A rank gives back all that it holds. When all weight
// that home has minted is back, no computation of the scope is left on another rank.
#pragma once

#include <cstdint>
#include <utility>

namespace sojourn::detail {

class scope_weight {
 public:
  /// How much home mints for a message. Another rank gives a sixteenth of its weight to each
  /// message, so that it can send some hundred, and half of it when it has little; when it runs
  /// out, it asks home for more.
  static constexpr std::uint64_t minted_at_once = std::uint64_t{1} << 40;

  explicit scope_weight(bool at_home) : at_home_(at_home) {}

  bool at_home() const { return at_home_; }
  /// True when no message can take weight along before home has sent more.
  bool is_exhausted() const { return !at_home_ && amount_ < 2; }
  /// How much the next message takes along; 0 when is_exhausted().
  std::uint64_t available() const {
    if (at_home_) return minted_at_once;
    return amount_ / (amount_ < little ? 2 : 16);
  }
  /// Takes available(). Requires: not is_exhausted().
  std::uint64_t take() {
    const std::uint64_t taken = available();
    at_home_ ? amount_ += taken : amount_ -= taken;
    return taken;
  }
  /// Adds weight that has come. Returns false, and adds nothing, when it is more than home has
  /// given away.
  bool add(std::uint64_t come) {
    if (!at_home_) {
      amount_ += come;
      return true;
    }
    if (come > amount_) return false;
    amount_ -= come;
    return true;
  }
  /// True at home when other ranks, or messages, have weight.
  bool is_out() const { return at_home_ && amount_ != 0; }
  /// Takes all weight of a rank that is not the home, to be given back.
  std::uint64_t take_all() { return std::exchange(amount_, 0); }

 private:
  static constexpr std::uint64_t little = std::uint64_t{1} << 20;

  bool at_home_;
  std::uint64_t amount_ =
      0;  ///< At home: what was minted and is not back. Elsewhere: what this rank holds.
};

}  // namespace sojourn::detail
