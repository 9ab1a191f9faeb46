// SPDX-License-Identifier: Apache-2.0
// Objects whose methods run one at a time.
#pragma once

#include <mutex>
#include <type_traits>
#include <utility>

#include "sojourn/waiting/sync.hpp"

namespace sojourn {

class monitor;

namespace detail {
struct may_reenter {};
/// Calls call(), a method's, on `object`.
template <class C, class Call>
[[gnu::always_inline]] inline decltype(auto) in_turn(C& object, Call&& call);
}  // namespace detail

/// Base of classes whose methods run one at a time for each object, in the order in which the calls
/// came, also when a method suspends: a call through a global_ptr (call, async, by name, from this
/// rank or another) waits until the method before it has returned. Plain calls, `p->method()`, do
/// not wait. Where no method suspends this costs a few instructions a call.
/// Errors: sojourn::error when a method calls a method of its own object through a global_ptr,
/// because it would wait for itself; if it does so by way of another rank, that is a deadlock,
/// which is reported.
/// Source: Hoare, Monitors (1974); the atomic methods of MRPC §5.1.
class monitor {
 public:
  monitor() = default;
  /// A copy has a turn of its own.
  monitor(const monitor&) : monitor() {}
  monitor& operator=(const monitor&) { return *this; }

 private:
  template <class C, class Call>
  friend decltype(auto) detail::in_turn(C& object, Call&& call);

  mutable mutex turn_;
};

/// A T whose methods run one at a time for each object, for a T that is not a monitor:
/// make<exclusive<T>>(rank, …) makes one, and the methods of T are called through its global_ptr as
/// usual. It is as a monitor, but a method may call another of its own object, also through other
/// functions on the same stack; that one runs at once. A call that waits for its turn suspends.
/// Objects that wait for each other's turns are a deadlock, which is reported.
/// Source: the implicit locks of Plevyak et al., §2.
template <class T>
class exclusive : public T, public monitor, private detail::may_reenter {
 public:
  template <class... A>
    requires std::is_constructible_v<T, A...>
  explicit exclusive(A&&... arguments) : T(std::forward<A>(arguments)...) {}
};

namespace detail {

template <class C, class Call>
[[gnu::always_inline]] inline decltype(auto) in_turn([[maybe_unused]] C& object, Call&& call) {
  if constexpr (std::is_base_of_v<monitor, C>) {
    mutex& turn_of_object = static_cast<const monitor&>(object).turn_;
    if constexpr (std::is_base_of_v<may_reenter, C>) {
      if (turn_of_object.is_mine()) return call();
    }
    const std::lock_guard turn(turn_of_object);
    return call();
  } else {
    return call();
  }
}

}  // namespace detail
}  // namespace sojourn
