// SPDX-License-Identifier: Apache-2.0
// The word at an access that says what it costs.
#pragma once

#include <cstdint>
#include <source_location>

#include "sojourn/detail/mark.hpp"

namespace sojourn {

/// Names an open activation, so that a younger one can ask that everything up to it moves. A plain
/// value; once that activation has ended it names nothing.
class activation {
 public:
  activation() = default;
  friend bool operator==(activation, activation) = default;

 private:
  friend class via;
  friend activation this_activation();
  std::uint64_t address_ = 0;
};

/// The youngest open activation of the running fiber; names nothing in a pinned fiber outside any.
inline activation this_activation() {
  activation a;
  a.address_ = reinterpret_cast<std::uint64_t>(
      detail::running.youngest != nullptr ? detail::running.youngest : detail::running.base);
  return a;
}

/// How an access to a remote object is made. Changes what it costs, never what it means.
class via {
 public:
  enum class mechanism : std::uint8_t { rpc, migrate };

  /// Run the method at the owner and reply.
  static const via rpc;
  /// Move the current activation to the owner; its result goes straight to its caller. Where it
  /// may not move (the rank's main fiber, a capturing lambda, a `stay`, an exception in flight)
  /// the access is an rpc.
  static const via migrate;

  /// The same, moving the `count` youngest activations together. Requires: count >= 1.
  constexpr via activations(unsigned count) const {
    via v = *this;
    v.count_ = count;
    return v;
  }
  /// The same, moving every activation of this fiber that is here.
  constexpr via all() const { return activations(~0u); }
  /// The same, moving all activations from the youngest to `oldest`, that one included. When
  /// `oldest` stayed behind on another rank, all that are here.
  constexpr via through(activation oldest) const {
    via v = activations(~0u);
    v.through_ = oldest.address_;
    return v;
  }

  constexpr mechanism how() const { return mechanism_; }
  constexpr unsigned count() const { return count_; }
  constexpr std::uint64_t through_address() const { return through_; }
  friend constexpr bool operator==(via, via) = default;

 private:
  constexpr explicit via(mechanism m) : mechanism_(m) {}
  mechanism mechanism_;
  unsigned count_ = 1;
  std::uint64_t through_ = 0;
};

inline constexpr via via::rpc{via::mechanism::rpc};
inline constexpr via via::migrate{via::mechanism::migrate};

namespace detail {

/// A policy and where it was written; the conversion from `via` carries the source location.
struct access {
  via how;
  std::source_location where;
  constexpr access(via v, std::source_location at = std::source_location::current())
      : how(v), where(at) {}
};

/// What SOJOURN_VIA makes of an access: `method` is the compiler's name of it.
via override_access(const access& at, const char* method);

/// Moves activations of the running fiber to rank `to`, as `how` says; true when this now runs
/// there. False when they may not move: nothing has happened then. Suspends.
bool migrate_activations(int to, via how);

}  // namespace detail
}  // namespace sojourn
