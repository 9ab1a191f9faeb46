// SPDX-License-Identifier: Apache-2.0
// Remote calls of functions.
//
// Calls a function on every rank at once, and adds up the answers (docs/examples/account.cpp):
//
//     std::vector<future<long>> answers;
//     for (rank_t r = 0; r < rank_count(); ++r) {
//       answers.push_back(rpc(r, [](long x) { return x * rank_me(); }, 10L));
//     }
//     long sum = 0;
//     for (long answer : when_all(std::move(answers)).get()) sum += answer;
#pragma once

#include <new>
#include <type_traits>
#include <utility>

#include "sojourn/detail/bundle.hpp"
#include "sojourn/detail/request.hpp"
#include "sojourn/future.hpp"
#include "sojourn/rank.hpp"

namespace sojourn {

namespace detail {

/// What a refused call returns, so that the compiler says no more of it.
template <class R>
struct refused_future {
  R get();
};

template <class F, class... A>
struct checked_call {
  static_assert(!std::is_member_pointer_v<F>,
                "sojourn: rpc and rpc_ff take functions; for a method of the object at p write "
                "p.call<&T::method>(…), p.async<&T::method>(…) or, one-way, p.ff<&T::method>(…)");
  static_assert(std::is_member_pointer_v<F> || is_captureless<F>,
                "sojourn: a function called on another rank cannot capture variables: pass them as "
                "arguments");
  static constexpr bool arguments_fit = (marshals<A> && ...);
  static_assert(
      arguments_fit || std::is_member_pointer_v<F>,
      "sojourn: an argument of this call cannot travel: it holds a pointer or a reference, "
      "or is of a class without `serialize`; sojourn/calls/marshal.hpp lists what can");
  static_assert(std::is_invocable_v<F, A...> || std::is_member_pointer_v<F>,
                "sojourn: the arguments of this call do not fit the function, which must take that "
                "many parameters, by value or const&");
  using result =
      typename std::conditional_t<std::is_invocable_v<F, A...>, std::invoke_result<F, A...>,
                                  std::type_identity<void>>::type;
  static constexpr bool result_fits = is_result<result>;
  static_assert(
      result_fits,
      "sojourn: the result of this call cannot travel: it holds a pointer, a reference or a "
      "view, or is of a class without `serialize`; sojourn/calls/marshal.hpp lists what can");
  static constexpr bool good =
      is_captureless<F> && arguments_fit && std::is_invocable_v<F, A...> && result_fits;
  static constexpr bool is_plain_call = (travels<A> && ...);

  using request = request_of<function_target<F, result>, A...>;
  static ticket_id send(rank_t rank, F fn, bool answered, A&... arguments) {
    return request::send(request_way{rank, answered}, travelling_callable<F>(fn), arguments...);
  }
};

}  // namespace detail

/// Calls fn(arguments…) on `rank` and returns the future of its result; that future also gets the
/// exception that leaves `fn`. `fn` is a function or a callable without captures. It runs when
/// `rank` next looks at its messages, in the dispatcher until it blocks and as a fiber from then
/// on; it may block, call back and migrate. `rank` may be the caller's own: `fn` then runs
/// concurrently with the caller.
///
/// Arguments and result are values that marshal.hpp lists, up to 1 GiB together. Where all travel
/// as bytes they are copied into the message unchanged. Otherwise the function's fiber stays on its
/// rank: `via::migrate` in it, outside an activation, is an rpc.
/// Suspends: only when the way to `rank` is full. Errors: malformed_message; what a `serialize`
/// throws. Source: MRPC §3, on active messages.
template <class F, class... A>
auto rpc(rank_t rank, F fn, A... arguments) {
  using call = detail::checked_call<F, A...>;
  if constexpr (call::good) {
    detail::check_arguments(rank, arguments...);
    return detail::future_access::of_ticket<future<typename call::result>>(
        call::send(rank, fn, true, arguments...));
  } else {
    return detail::refused_future<typename call::result>();
  }
}

/// As rpc, without a reply: the caller does not learn when `fn` is done, but a surrounding `finish`
/// waits for it. A surrounding `finish` rethrows an exception that leaves `fn`; without one it ends
/// the job. Calls from one rank to another begin in the order in which they were made. Only one
/// with more than 4 MiB of arguments begins when these have been read, and later calls may overtake
/// it. With aggregation (aggregate.hpp) many small ones go in one message.
template <class F, class... A>
inline void rpc_ff(rank_t rank, F fn, A... arguments) {
  using call = detail::checked_call<F, A...>;
  if constexpr (call::good) {
    detail::check_arguments(rank, arguments...);
    if constexpr (call::is_plain_call) {
      using bundled = detail::bundled_call<F, typename call::result, A...>;
      if constexpr (bundled::fits) {
        if (static_cast<unsigned>(rank) < detail::open_run_count)
          return bundled::send(rank, fn, arguments...);
      }
    } else {
      using bundled = detail::bundled_values<detail::bundled_function_callee<F>, A...>;
      if (static_cast<unsigned>(rank) < detail::open_run_count &&
          bundled::add(rank, 0, detail::travelling_callable<F>(fn), arguments...))
        return;
    }
    if (detail::open_run_count != 0) ++detail::counts.calls_not_bundled;
    (void)call::send(rank, fn, false, arguments...);
  }
}

}  // namespace sojourn
