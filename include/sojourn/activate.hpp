// SPDX-License-Identifier: Apache-2.0
// Activations: the frames that migration moves.
#pragma once

#include <type_traits>
#include <utility>

#include "sojourn/calls/travels.hpp"
#include "sojourn/detail/activation.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/via.hpp"

namespace sojourn {

namespace detail {

/// What a refused activation returns. It converts to any type, so the compiler reports nothing
/// besides the refusal.
struct refused {
  template <class T>
  operator T() const;
};

template <class F, class... A>
struct checked_activation {
  static constexpr bool fits = std::is_invocable_v<F, A...>;
  static_assert(
      fits,
      "sojourn: the arguments of this activation do not fit the function, which must take "
      "that many parameters, by value or const&");
  using result = typename std::conditional_t<fits, std::invoke_result<F, A...>,
                                             std::type_identity<refused>>::type;
  static_assert(!is_captureless<F> || (travels<A> && ...),
                "sojourn: an argument of this activation cannot travel: make it trivially copyable "
                "(no pointer, no reference), or declare travels<T>");
  static_assert(!is_captureless<F> || !fits || travels<result>,
                "sojourn: the result of this activation cannot travel: make it trivially copyable "
                "(no pointer, no reference), or declare travels<T>");
};

}  // namespace detail

/// Calls fn(arguments…) as an activation: `via::migrate` inside it moves its frames, and the
/// result or exception comes straight back here however many hops it took. Where nothing migrates
/// it costs a few nanoseconds over a plain call. Activations nest; see via::activations.
///
/// `fn` is a function or a callable without captures; arguments and result are values that travel.
/// A capturing lambda is allowed, but stays on its rank: `via::migrate` in it, outside an inner
/// activation, is an rpc. Suspends: when it migrates. Source: Hsieh, Wang and Weihl, §3.
template <class F, class... A>
[[gnu::always_inline]] inline auto activate(F&& fn, A&&... arguments) ->
    typename detail::checked_activation<std::decay_t<F>, std::decay_t<A>...>::result {
  using checked = detail::checked_activation<std::decay_t<F>, std::decay_t<A>...>;
  using R = typename checked::result;
  if constexpr (!checked::fits) {
    return R();
  } else if constexpr (detail::is_captureless<std::decay_t<F>>) {
    return detail::call_activation<detail::mark_kind::activation, R>(std::forward<F>(fn),
                                                                     std::forward<A>(arguments)...);
  } else {
    return detail::call_activation<detail::mark_kind::activation_by_reference, R>(
        std::forward<F>(fn), std::forward<A>(arguments)...);
  }
}

/// Moves the current activation (or what `how` says) to `rank`. Returns true when the caller now
/// runs there; false when it may not move, and then nothing has happened. Suspends. After a move,
/// addresses of malloc'd memory mean nothing, and globals and errno are those of the new rank.
/// Errors: sojourn::error when there is no such rank.
inline bool migrate_to(rank_t rank, via how = via::migrate) {
  return rank == rank_me() || detail::migrate_activations(rank, how);
}

/// While a `stay` lives, the activation whose frames hold it stays on its rank.
class stay : private detail::hold {
 public:
  stay() {
    outer = detail::running.holds;
    detail::running.holds = this;
  }
  ~stay() { detail::running.holds = outer; }
  stay(const stay&) = delete;
  stay& operator=(const stay&) = delete;
};

}  // namespace sojourn
