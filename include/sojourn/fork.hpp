// SPDX-License-Identifier: Apache-2.0
// Children that run in place first: a fork is a call until it blocks.
//
// Children that run as plain calls unless they wait (docs/examples/forks.cpp):
//
//     long fibonacci(long n) {
//       if (n < 2) return n;
//       auto older = fork(fibonacci, n - 1);
//       const long younger = fibonacci(n - 2);
//       return older.get() + younger;
//     }
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

#include "sojourn/calls/travels.hpp"
#include "sojourn/detail/addresses.hpp"
#include "sojourn/detail/forked.hpp"
#include "sojourn/detail/marshalled.hpp"
#include "sojourn/local_ptr.hpp"
#include "sojourn/waiting/window.hpp"

namespace sojourn {

namespace detail {

/// True when a value may leave this rank as its bytes, and refers to nothing that stays. (A lambda
/// with captures may be copied, but what it refers to stays.)
template <class T>
inline constexpr bool leaves = travels<T> && !may_have_address<T>;

template <class F, class... A>
struct checked_fork {
  static constexpr bool fits = std::is_invocable_v<F, A...>;
  static_assert(fits,
                "sojourn: the arguments of this fork do not fit the function, which must take that "
                "many parameters, by value or const&");
  using result = typename std::conditional_t<fits, std::invoke_result<F, A...>,
                                             std::type_identity<void>>::type;
  /// The child's frames refer to nothing of this rank, except through what the child calls.
  static constexpr bool may_leave =
      is_captureless<F> && (leaves<A> && ...) && fits && leaves<result>;
  /// An argument is a local_ptr or has one, so the child may leave only where ranks share their
  /// heaps.
  static constexpr bool shares_heap = (uses_shared_heap<A> || ...);
};

}  // namespace detail

/// Calls fn(arguments…) and returns the future of its result. The child runs at once, on the
/// caller's stack: while it does not block this costs little more than a call. When it blocks, its
/// frames are set aside and fork returns to the caller; the child goes on when what it waits for is
/// there. Any function may block, and need not say so.
///
/// A child that is a function or a callable without captures, with arguments and a result that
/// travel, may migrate, or begin on a rank that has nothing to do, and such a rank may take over
/// what its caller still has to do. Any other child may refer to frames of its caller, by a
/// capture, a pointer, a view such as std::span or std::string_view, or a structure with one of
/// these: it stays on its rank, and if its future is destroyed unread, the destructor waits for it.
/// get() rethrows what a child throws.
///
/// SOJOURN_EXECUTION=heap gives each child a stack of its own from the start. Such a child stays on
/// its rank: `via::migrate` in it, outside an activation, is an rpc.
/// Suspends: never. Source: Plevyak, Karamcheti, Zhang and Chien, §3; Mohr, Kranz and Halstead,
/// Lazy Task Creation (1991).
template <class F, class... A>
[[nodiscard(
      "the destructor of a fork's future waits for the child: keep the future, or use par_for"),
  gnu::always_inline]] inline auto
fork(F&& fn, A&&... arguments)
    -> future<typename detail::checked_fork<std::decay_t<F>, std::decay_t<A>...>::result> {
  using checked = detail::checked_fork<std::decay_t<F>, std::decay_t<A>...>;
  using R = typename checked::result;
  constexpr auto stays = detail::mark_kind::fork_by_reference;
  constexpr auto kind = checked::may_leave ? detail::mark_kind::fork : stays;
  if constexpr (checked::may_leave && checked::shares_heap) {
    if (!detail::job.heap_shared) {
      return detail::call_forked<stays, R>(std::forward<F>(fn), std::forward<A>(arguments)...);
    }
  }
  return detail::call_forked<kind, R>(std::forward<F>(fn), std::forward<A>(arguments)...);
}

/// Calls all of the functions, each but the last as a child, and returns when all have returned.
/// Then rethrows what one of them threw; if several threw, that of the last one. Suspends.
template <std::invocable First, std::invocable... More>
void par_invoke(First&& first, More&&... more) {
  if constexpr (sizeof...(More) == 0) {
    first();
  } else {
    auto child = fork([&first] { first(); });
    par_invoke(std::forward<More>(more)...);
    child.get();
  }
}

namespace detail {

/// A callable as an argument of a child: by reference, for children that stay on this rank; or by
/// value, for children that may run on any rank.
template <class F>
struct carried_here {
  const F& call;
};
template <class F>
struct carried_anywhere {
  F call;
};

[[noreturn]] void refuse_grain();

}  // namespace detail

template <class F>
inline constexpr bool travels<detail::carried_here<F>> = false;

namespace detail {

/// How many numbers are in [first, last). Unsigned, because there may be more than the greatest I.
template <class I>
constexpr std::make_unsigned_t<I> count_between(I first, I last) {
  using count = std::make_unsigned_t<I>;
  return static_cast<count>(static_cast<count>(last) - static_cast<count>(first));
}
template <class I>
constexpr bool is_run(I first, I last, I grain) {
  return count_between(first, last) <= static_cast<std::make_unsigned_t<I>>(grain);
}
template <class I>
constexpr I middle_of(I first, I last) {
  using count = std::make_unsigned_t<I>;
  return static_cast<I>(static_cast<count>(first) + count_between(first, last) / 2);
}

/// The older half is a child, until `grain` are left.
template <class I, class Body>
void run_range(I first, I last, I grain, Body body) {
  if (is_run(first, last, grain)) {
    for (; first != last; ++first) body.call(first);
    return;
  }
  const I middle = middle_of(first, last);
  auto older = fork(run_range<I, Body>, first, middle, grain, body);
  run_range<I, Body>(middle, last, grain, body);
  older.get();
}

template <class T, class I, class Body, class Combine>
T reduce_range(I first, I last, I grain, Body body, Combine combine) {
  if (is_run(first, last, grain)) {
    T sum = body.call(first);
    while (++first != last) sum = combine.call(std::move(sum), body.call(first));
    return sum;
  }
  const I middle = middle_of(first, last);
  auto older = fork(reduce_range<T, I, Body, Combine>, first, middle, grain, body, combine);
  T younger = reduce_range<T, I, Body, Combine>(middle, last, grain, body, combine);
  return combine.call(older.get(), std::move(younger));
}

}  // namespace detail

/// Says of a loop that its body may run on any rank of the program, where it sees that rank's
/// global variables.
struct anywhere_t {};
inline constexpr anywhere_t anywhere;

/// Calls body(i) for each i of [first, last) and returns when all calls have returned. It halves
/// the range again and again, down to runs of at most `grain` indices, and forks one half each
/// time. The calls of a run come one after the other: one that blocks holds up only those behind it
/// in its run. All run on this rank. What a body throws is rethrown at the end; the rest of its run
/// is left out. Suspends.
/// Errors: sojourn::error when `grain` is not positive.
template <std::integral I, std::invocable<I> Body>
void par_for(I first, std::type_identity_t<I> last, const Body& body,
             std::type_identity_t<I> grain = 1) {
  if (grain < 1) detail::refuse_grain();
  if (first < last) detail::run_range<I>(first, last, grain, detail::carried_here<Body>{body});
}
/// The same, but idle ranks may run parts of the range. Requires: the body has no captures.
template <std::integral I, std::invocable<I> Body>
void par_for(anywhere_t, I first, std::type_identity_t<I> last, Body body,
             std::type_identity_t<I> grain = 1) {
  static_assert(detail::is_captureless<Body>,
                "sojourn: the body of a loop that may run anywhere cannot capture variables");
  if (grain < 1) detail::refuse_grain();
  if (first < last) detail::run_range<I>(first, last, grain, detail::carried_anywhere<Body>{body});
}

namespace detail {

/// What the children of a loop with a window share, which all stay on this rank.
template <class I, class Body>
struct shared_range {
  I next;
  I last;
  const Body& body;
  std::exception_ptr failure = nullptr;

  bool is_done() const { return next == last; }
  void run() {
    while (!is_done()) {
      try {
        body(next++);
      } catch (...) {
        if (failure == nullptr) failure = std::current_exception();
      }
    }
  }
};

template <class I, class Body>
void run_in_window(shared_range<I, Body>& range, std::size_t in_flight) {
  const stays_here stays;  // as `children` does
  in_flight = std::min<std::uintmax_t>(in_flight, count_between(range.next, range.last));
  std::vector<future<void>> children;
  // Each child goes on with the loop until a call blocks. Then the next one begins.
  while (children.size() + 1 < in_flight && !range.is_done())
    children.push_back(fork([&range] { range.run(); }));
  range.run();
  for (future<void>& child : children) child.get();
}

}  // namespace detail

/// As par_for(first, last, body), but at most `how.in_flight` calls of the body are under way at a
/// time: when one returns, the next one begins, however long others take. (A grain would make each
/// run wait for its longest call.) The calls begin in the order of their indices. All are made,
/// also when one throws; the first exception is rethrown at the end. A call that waits holds some
/// 1 KiB. Suspends. Errors: sojourn::error when `how.in_flight` is 0.
///
///     par_for(0, 1'000'000, [&](long i) { visit(i); }, {.in_flight = 1024});
template <std::integral I, std::invocable<I> Body>
void par_for(I first, std::type_identity_t<I> last, const Body& body, const window& how) {
  if (how.in_flight < 1) detail::refuse_window();
  if (!(first < last)) return;
  detail::shared_range<I, Body> range{first, last, body};
  detail::run_in_window(range, how.in_flight);
  if (range.failure != nullptr) std::rethrow_exception(range.failure);
}

/// combine(… combine(body(first), body(first + 1)) …) over [first, last), in that order, but
/// bracketed in any way: `combine` is associative. An empty range gives `identity`. Otherwise as
/// par_for.
template <std::integral I, class T, std::invocable<I> Body, class Combine>
T par_reduce(I first, std::type_identity_t<I> last, T identity, const Body& body,
             const Combine& combine, std::type_identity_t<I> grain = 1) {
  if (grain < 1) detail::refuse_grain();
  if (!(first < last)) return identity;
  return detail::reduce_range<T, I>(first, last, grain, detail::carried_here<Body>{body},
                                    detail::carried_here<Combine>{combine});
}
/// The same, but idle ranks may run parts of the range. Requires: `body` and `combine` have no
/// captures, and T travels and is not a view.
template <std::integral I, class T, std::invocable<I> Body, class Combine>
T par_reduce(anywhere_t, I first, std::type_identity_t<I> last, T identity, Body body,
             Combine combine, std::type_identity_t<I> grain = 1) {
  static_assert(
      detail::is_captureless<Body> && detail::is_captureless<Combine> && detail::leaves<T>,
      "sojourn: in a reduction that may run anywhere, the body and the combination have no "
      "captures, and the value travels");
  if (grain < 1) detail::refuse_grain();
  if (!(first < last)) return identity;
  return detail::reduce_range<T, I>(first, last, grain, detail::carried_anywhere<Body>{body},
                                    detail::carried_anywhere<Combine>{combine});
}

}  // namespace sojourn
