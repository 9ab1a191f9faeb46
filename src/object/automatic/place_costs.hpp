// SPDX-License-Identifier: Apache-2.0
// What a place in the program has learnt about the ways in which its calls can be made, and which
// it takes (via::automatic). Knows nothing of messages and fibers.
//
// A place begins with calls to the owner (rpc). Now and then it tries another way once, and when
// that has had its effect, it is told the cost and how many calls that has paid for: after a
// migration, those that were made where the computation then was; after a copy or an object has
// come, those that ran on it (until it went, or until more would say no more). Costs are in units
// of one call to the owner, so that rpc costs 1 a call. The way that costs least a call is taken.
// The others are tried the more seldom the more they cost.
#pragma once

#include <array>
#include <cstdint>

namespace sojourn::detail {

class place_costs {
 public:
  /// A copy or the object itself comes here (`bring`), whichever the method needs.
  enum class way : std::uint8_t { rpc, migrate, bring };

  place_costs(bool can_migrate, bool can_bring);

  way now() const { return now_; }
  /// So many calls are made by now(), and then next() is to be asked. At least 1.
  std::uint32_t calls_until_next() const { return until_next_; }
  /// How the next call is made: a trial, perhaps, whose cost is to be told. `passed`: the calls
  /// since the last one that next() was asked about, this one included.
  way next(std::uint32_t passed);
  /// A trial of `of`, or a use of it, was over, cost `cost`, and paid for `calls` calls.
  void learn(way of, double cost, double calls);

  /// Estimated, for a call; 1 for rpc. Below 0: not known.
  double cost_of(way of) const;
  /// For how many calls a trial has paid, most_calls at most.
  double calls_a_trial(way of) const;
  std::uint32_t trials(way of) const { return of == way::rpc ? 0 : other(of).trials; }
  std::uint32_t changes() const { return changes_; }
  /// `bring` is taken, or will be when enough trials have been as those that there were.
  bool should_bring() const;

  /// More calls than so many, which one trial has paid for, say no more about the next trial: a
  /// copy of the one object that all need stays for ever, and the copies of others may be useless
  /// all the same.
  static constexpr double most_calls = 32;

 private:
  struct alternative {
    bool is_possible = false;
    double cost = 0;  ///< Sums, in which old trials count the less the older they are.
    double calls = 0;
    double weight = 0;
    std::uint32_t trials = 0;  ///< Those that are over.
    std::uint32_t begun = 0;
    std::uint32_t until_trial = 0;
  };
  alternative& other(way of) { return others_[of == way::migrate ? 0 : 1]; }
  const alternative& other(way of) const { return others_[of == way::migrate ? 0 : 1]; }
  std::uint32_t interval_of(way of) const;
  void choose();
  void plan();

  std::array<alternative, 2> others_;
  way now_ = way::rpc;
  double chosen_at_ = 1;  ///< What now_ cost when it was chosen.
  std::uint32_t until_next_;
  std::uint32_t changes_ = 0;
};

}  // namespace sojourn::detail
