// SPDX-License-Identifier: Apache-2.0
// One object on each rank, for the programs to call.
#pragma once

#include <array>

#include "outcome.hpp"
#include "settings.hpp"

namespace cut_rules {

template <bool Real>
u64 node(u64 seed, u64 depth, sojourn::activation oldest);

inline u64 salt_of(int rank) { return hash(static_cast<u64>(rank) + 1000); }

/// A remote function; what it returns is the same wherever it runs, it may wait first.
template <bool Real>
u64 remote_function(u64 x) {
  if constexpr (Real) {
    if (x % 4 == 1) sojourn::yield();
    if (x % 16 == 2) x = sojourn::rpc(rank_of(x), [](u64 y) { return y; }, x).get();
  }
  if (x % 16 == 3) throw_one(x >> 5);
  return hash(x);
}

/// Longer than what a ticket holds in place.
using many_words = std::array<u64, 24>;

template <bool Real>
many_words many_words_of(u64 seed, u64 depth, sojourn::activation oldest) {
  u64 v = outcome_of([&] { return node<Real>(seed, depth, oldest); }).value;
  many_words m;
  for (u64& word : m) word = v = hash(v);
  return m;
}

/// Any of the ways to migrate.
inline sojourn::via some_migration(u64 x, sojourn::activation oldest) {
  switch (x % 8) {
    case 0:
      return sojourn::via::migrate.activations(2);
    case 1:
      return sojourn::via::migrate.activations(3);
    case 2:
      return sojourn::via::migrate.all();
    case 3:
      return sojourn::via::migrate.through(oldest);
    default:
      return sojourn::via::migrate;
  }
}

class cell {
 public:
  explicit cell(u64 salt) : salt_(salt) {}

  u64 work(u64 x) {
    int rank = sojourn::rank_me();
    u64 salt = salt_;
    if (x % 4 == 0) sojourn::yield();
    if (x % 4 == 1) (void)sojourn::rpc(rank_of(x), remote_function<true>, u64{0}).get();
    if (rank != sojourn::rank_me() || salt != salt_ || salt != salt_of(rank)) {
      fail(x, "a method's object changed while it waited");
    }
    if (x % 16 == 3) throw_one(x >> 5);
    return hash(x ^ salt_);
  }

  /// What is called from here may move, this frame may not.
  u64 work_deep(u64 x, u64 depth) {
    int rank = sojourn::rank_me();
    sojourn::stay here;
    u64 inner = outcome_of([&] {
                  return sojourn::activate(node<true>, x, depth, sojourn::activation{});
                }).value;
    if (rank != sojourn::rank_me() || salt_ != salt_of(rank)) {
      fail(x, "a method that stays has moved from rank %d", rank);
    }
    return mix(inner, salt_);
  }

 private:
  u64 salt_;
};

/// What the methods return, for the serial evaluation.
inline u64 work_of(int owner, u64 x) {
  if (x % 16 == 3) throw_one(x >> 5);
  return hash(x ^ salt_of(owner));
}
inline u64 work_deep_of(int owner, u64 x, u64 depth) {
  u64 inner = outcome_of([&] { return node<false>(x, depth, {}); }).value;
  return mix(inner, salt_of(owner));
}

/// The cell of each rank; the same table on every rank.
inline std::array<sojourn::global_ptr<cell>, 64> cells;

}  // namespace cut_rules
