// SPDX-License-Identifier: Apache-2.0
// A rank's part of the weight of a finish scope. Home mints weight; whatever is sent takes some
// along, which its receiver holds. A rank gives back all that it holds: when nothing that home has
// minted is out any more, no computation of the scope is left elsewhere.
#pragma once

#include <cstdint>
#include <utility>

namespace sojourn::detail {

class scope_weight {
 public:
  /// Away from home the weight is halved for each message; a rank that runs out of it asks home for
  /// more.
  static constexpr std::uint64_t minted_at_once = std::uint64_t{1} << 40;

  explicit scope_weight(bool at_home) : at_home_(at_home) {}

  bool at_home() const { return at_home_; }
  /// True when there is none to take before home has sent more.
  bool is_exhausted() const { return !at_home_ && amount_ < 2; }
  /// What the next message takes along; 0 when it is exhausted.
  std::uint64_t available() const { return at_home_ ? minted_at_once : amount_ / 2; }
  /// Takes that. Requires: it is not exhausted.
  std::uint64_t take() {
    const std::uint64_t taken = available();
    at_home_ ? amount_ += taken : amount_ -= taken;
    return taken;
  }
  /// Adds what has come. False, and nothing is added, when it is more than home has given away.
  bool add(std::uint64_t come) {
    if (!at_home_) {
      amount_ += come;
      return true;
    }
    if (come > amount_) return false;
    amount_ -= come;
    return true;
  }
  /// At home: other ranks, and messages, have some of it.
  bool is_out() const { return at_home_ && amount_ != 0; }
  /// Away from home: all of it, to be given back.
  std::uint64_t take_all() { return std::exchange(amount_, 0); }

 private:
  bool at_home_;
  std::uint64_t amount_ = 0;  ///< At home: minted and not yet back. Elsewhere: held here.
};

}  // namespace sojourn::detail
