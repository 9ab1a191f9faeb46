// SPDX-License-Identifier: Apache-2.0
// Remote calls of functions.
#pragma once

#include <type_traits>
#include <utility>

#include "sojourn/detail/wire.hpp"
#include "sojourn/future.hpp"
#include "sojourn/rank.hpp"

namespace sojourn {

namespace detail {

template <class F, class... A>
struct checked_call {
  static_assert(is_captureless<F>,
                "sojourn: a function called on another rank cannot capture variables: pass them as "
                "arguments");
  static_assert((travels<A> && ...),
                "sojourn: an argument of this call cannot travel: make it trivially copyable (no "
                "pointer, no reference), or declare travels<T>");
  static_assert(std::is_invocable_v<F, A...>,
                "sojourn: the arguments of this call do not fit the function: it takes as many, by "
                "value or const&");
  using result =
      typename std::conditional_t<std::is_invocable_v<F, A...>, std::invoke_result<F, A...>,
                                  std::type_identity<void>>::type;
  static_assert(travels<result>,
                "sojourn: the result of this call cannot travel: make it trivially copyable (no "
                "pointer, no reference), or declare travels<T>");
  using request = callable_request<F, result, A...>;
};

}  // namespace detail

/// Calls fn(arguments…) on `rank` and returns the future of its result; an exception arrives
/// there too. `fn` is a function or a callable without captures; it runs when the rank next looks
/// at its messages, in the dispatcher until it blocks and as a fiber from then on; it may block,
/// call back and migrate. On this rank it does the same: the way to start concurrent work.
/// Suspends: only when the way to `rank` is full. Source: MRPC §3, on active messages.
template <class F, class... A>
auto rpc(rank_t rank, F fn, A... arguments) {
  using call = detail::checked_call<F, A...>;
  using payload = typename call::request::payload_type;
  return future<typename call::result>::of_ticket(detail::send_request<typename call::request>(
      rank, payload{detail::travelling_callable<F>(fn), {std::move(arguments)...}}, true));
}

/// The same without a reply: nothing tells when it is done, but a surrounding `finish` waits for
/// it. An exception that leaves `fn` ends the job, or is rethrown by the surrounding `finish`.
template <class F, class... A>
void rpc_ff(rank_t rank, F fn, A... arguments) {
  using call = detail::checked_call<F, A...>;
  using payload = typename call::request::payload_type;
  (void)detail::send_request<typename call::request>(
      rank, payload{detail::travelling_callable<F>(fn), {std::move(arguments)...}}, false);
}

}  // namespace sojourn
