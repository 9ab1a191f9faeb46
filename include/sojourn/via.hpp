// SPDX-License-Identifier: Apache-2.0
// The word at an access that says what it costs.
#pragma once

#include <cstdint>
#include <source_location>

#include "sojourn/detail/mark.hpp"
#include "sojourn/detail/resumed.hpp"

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
  /// The address of the activation's mark, plus 1: an odd number is not taken for a pointer into
  /// frames that stay.
  std::uint64_t odd_address_ = 0;
};

/// The youngest open activation of the running fiber; names nothing in a pinned fiber that is
/// outside any activation.
inline activation this_activation() {
  activation a;
  const std::uint64_t youngest = detail::youngest_mark();
  a.odd_address_ =
      1 | (youngest != 0 ? youngest : reinterpret_cast<std::uint64_t>(detail::running.base));
  return a;
}

/// How an access to a remote object is made. It changes what the access costs, never what it means.
class via {
 public:
  enum class mechanism : std::uint8_t { rpc, migrate, cache, fetch, automatic };

  /// Run the method at the owner and reply.
  static const via rpc;
  /// Move the current activation to the owner; its result goes straight to its caller. Where the
  /// activation may not move (the rank's main fiber, a capturing lambda, a `stay`, an exception in
  /// flight) the access is an rpc.
  static const via migrate;
  /// Run a const method here, on a copy of the object that is as the object is. The copy comes with
  /// the first such access and stays until a method changes the object, which waits until all
  /// copies are given up. A method that changes the object moves it here first, as via::fetch does.
  /// What cannot be copied or moved (an object that does not travel as bytes, sojourn::travels) is
  /// called at the owner. (docs/policies.md)
  static const via cache;
  /// Move the object to this rank, and run the method here. Later calls from here, by whatever
  /// word, find it here; calls from elsewhere follow it. An object stays where it is while a method
  /// that is suspended needs it there, and the call then runs at its owner; likewise an object that
  /// does not travel as bytes, or that the program uses through `global_ptr::local`.
  /// (docs/policies.md)
  static const via fetch;
  /// Whichever of these costs least at this place in the program, by what they have cost there so
  /// far. It begins with rpc. It migrates only what the program has opened as an activation
  /// (activate.hpp). (docs/automatic.md)
  static const via automatic;
  /// What a call does that says nothing: via::automatic, but neither its activation nor the object
  /// moves, because only the program knows whether they may. So const methods come to run on
  /// copies; all others are called at the owner. (docs/automatic.md)
  static const via unsaid;

  /// This policy, but moving the `count` youngest activations together. Requires: count >= 1.
  constexpr via activations(unsigned count) const {
    const std::uint64_t most = count < all_of_them ? count : all_of_them;
    const std::uint64_t kept = this->count() == all_of_them && most != all_of_them
                                   ? mechanism_mask
                                   : address_mask | mechanism_mask;
    return via((bits_ & kept) | most << count_shift);
  }
  /// This policy, but moving every activation of this fiber that is on this rank.
  constexpr via all() const { return activations(all_of_them); }
  /// This policy, but moving all activations from the youngest to `oldest`, that one included; or,
  /// when `oldest` stayed behind on another rank, all that are on this rank.
  constexpr via through(activation oldest) const {
    return via((bits_ & mechanism_mask) | std::uint64_t{all_of_them} << count_shift |
               (oldest.odd_address_ & address_mask));
  }

  constexpr bool is_unsaid() const { return count() != all_of_them && (bits_ & unsaid_bit) != 0; }
  constexpr mechanism how() const { return static_cast<mechanism>(bits_ & mechanism_mask); }
  constexpr unsigned count() const { return static_cast<unsigned>(bits_ >> count_shift); }
  constexpr std::uint64_t through_address() const { return bits_ & address_mask; }
  static constexpr unsigned all_of_them = 0xffff;
  /// This policy, as via::automatic has chosen it: what it costs is to be told.
  constexpr via as_chosen() const { return via(bits_ | chosen_bit); }
  constexpr bool is_chosen() const { return count() != all_of_them && (bits_ & chosen_bit) != 0; }
  friend constexpr bool operator==(via, via) = default;

 private:
  // Policy, count and activation in one word, so that an access that stays local passes nothing on
  // a stack. The top 16 bits are the count. Below them is the address of an activation (of a mark,
  // of a frame that forked or of the end of a stack), whose lowest three bits are 0 and hold the
  // mechanism. Because of the count above the address, the word is not taken for a pointer.
  static constexpr unsigned count_shift = 48;
  static constexpr std::uint64_t mechanism_mask = 7;
  static constexpr std::uint64_t address_mask =
      (std::uint64_t{1} << count_shift) - 1 - mechanism_mask;
  static_assert(alignof(detail::mark) > mechanism_mask);
  /// Of the address, which is 0 in a policy that as_chosen() returns.
  static constexpr std::uint64_t chosen_bit = mechanism_mask + 1;
  /// Likewise: in `unsaid`.
  static constexpr std::uint64_t unsaid_bit = chosen_bit << 1;
  constexpr explicit via(mechanism m)
      : bits_(static_cast<std::uint64_t>(m) | std::uint64_t{1} << count_shift) {}
  constexpr explicit via(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits_;
};

inline constexpr via via::rpc{via::mechanism::rpc};
inline constexpr via via::migrate{via::mechanism::migrate};
inline constexpr via via::cache{via::mechanism::cache};
inline constexpr via via::fetch{via::mechanism::fetch};
inline constexpr via via::automatic{via::mechanism::automatic};
inline constexpr via via::unsaid{via::automatic.bits_ | via::unsaid_bit};

namespace detail {

/// A policy and where it was written; the conversion from `via` carries the source location.
struct access {
  via how;
  std::source_location where;
  constexpr access(via v, std::source_location at = std::source_location::current())
      : how(v), where(at) {}
};

/// What SOJOURN_VIA makes of an access: `method` is the compiler's name of it, `code` the address
/// to which its call returns. `is_elsewhere`: the object was made on another rank, so that the call
/// is counted.
via override_access(const access& at, const char* method, const void* code, bool is_elsewhere);

/// Returns resumed::there on the rank that it moved to, or else resumed::stayed. Callers compare
/// the result themselves: so a moved activation goes on directly in its caller, without a return
/// through a frame of the library.
resumed move_activations(int to, via how);
/// Moves activations of the running fiber to rank `to`, as `how` says; true when this now runs
/// there. False when they may not move: nothing has happened then. Suspends.
inline bool migrate_activations(int to, via how) {
  return move_activations(to, how) == resumed::there;
}

}  // namespace detail
}  // namespace sojourn
