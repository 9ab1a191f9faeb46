// SPDX-License-Identifier: Apache-2.0
// Promises of a program, which checked mode enforces, and exceptions to the rules of checked mode.
// Outside checked mode they cost the test of a flag, or nothing.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "sojourn/detail/checked.hpp"

namespace sojourn {

namespace detail {
struct this_scope {};
}  // namespace detail

template <class F = detail::this_scope>
struct nonblocking;

/// While a `nonblocking promise;` lives, the function that holds it promises not to wait, neither
/// itself nor in what it calls: no get(), no remote call, no barrier, no migration. Checked mode
/// ends the program, with the function's name, when it waits. Where checked mode is off, the
/// promise has no effect.
template <>
struct nonblocking<detail::this_scope> {
  [[gnu::always_inline]] nonblocking() {
    if (detail::checked()) [[unlikely]]
      promise();
  }
  [[gnu::always_inline]] ~nonblocking() {
    if (open_) [[unlikely]]
      detail::unwatch(detail::watched_kind::nonblocking, this);
  }
  nonblocking(const nonblocking&) = delete;
  nonblocking& operator=(const nonblocking&) = delete;

 private:
  void promise();
  bool open_ = false;
};

/// The name of `nonblocking promise;` until version 0.2.
using non_blocking [[deprecated("sojourn: non_blocking is called nonblocking now")]] =
    nonblocking<>;

/// A function, or a callable without captures, that never waits: `nonblocking promise;` promises
/// that for a block of code, this for every call of the function. rpc_ff(rank, nonblocking(fn),
/// arguments…) and rpc take it as they take `fn`. It must not wait for room in a ring either, so it
/// sends nothing. The gain: a call from another rank runs on the dispatcher's stack, and in a run
/// of such calls in a bundle (aggregate.hpp) the runtime writes nothing for each call. Errors: if
/// it calls or waits nevertheless, the program ends with a sentence that names it: in checked mode
/// always, otherwise when it was called by rpc or rpc_ff with at most 4 MiB of arguments (reading
/// more may wait).
/// Source: Concert, §3.2.1, the schema of methods that do not block.
template <class F>
struct nonblocking {
  [[no_unique_address]] F fn;

  nonblocking()
    requires std::default_initializable<F>
  = default;
  constexpr explicit nonblocking(F function) : fn(std::move(function)) {}

  template <class... A>
    requires std::is_invocable_v<const F&, A...>
  [[gnu::always_inline]] std::invoke_result_t<const F&, A...> operator()(A&&... arguments) const {
    const nonblocking<> promise;
    return std::invoke(fn, std::forward<A>(arguments)...);
  }
};

/// Says of a method, where it is specialised, that it never waits:
///
///   template <> inline constexpr bool sojourn::nonblocking_method<&cell::value> = true;
///
/// Specialise it before the first access that names the method, and in the same way in all files.
/// Calls of the method from other ranks then run without a stack of their own. Errors: as
/// nonblocking.
template <auto Method>
inline constexpr bool nonblocking_method = false;

namespace detail {
struct no_promise {};
template <bool Promises>
using promise_if = std::conditional_t<Promises, nonblocking<>, no_promise>;
}  // namespace detail

/// While a `scan_allow` lives, checked mode lets the frame that holds it migrate with words that
/// look like pointers to what stays behind. `reason` is a string literal, for the reader.
/// SOJOURN_ALLOW=function:reason does the same from outside.
class scan_allow {
 public:
  explicit scan_allow(const char* reason) : mark_(mark), reason_(reason) {}
  ~scan_allow() { mark_ = 0; }
  scan_allow(const scan_allow&) = delete;
  scan_allow& operator=(const scan_allow&) = delete;

  /// The word by which the scan recognises a scan_allow in a frame: no address, and no number that
  /// programs compute with.
  static constexpr std::uint64_t mark = 0x5ca9'a110'3ed7'feed;

 private:
  // Volatile, so that the compiler stores it although nothing in the program reads it.
  volatile std::uint64_t mark_;
  [[maybe_unused]] const char* volatile reason_;
};

}  // namespace sojourn
