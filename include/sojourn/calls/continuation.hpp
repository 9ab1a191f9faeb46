// SPDX-License-Identifier: Apache-2.0
// Continuations: the right to answer somebody's wait, as a value.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/calls/travels.hpp"
#include "sojourn/detail/registers.hpp"
#include "sojourn/detail/result.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/future.hpp"
#include "sojourn/global_ptr.hpp"
#include "sojourn/rpc.hpp"

namespace sojourn {

template <class T>
class continuation;

namespace detail {

/// Lies in the frame of a caller that waits for a reply, and takes the reply while the continuation
/// has not left the frames of what was called. A ticket is made when it leaves them, or when the
/// call returns and the continuation still exists unanswered: a chain that replies at once makes
/// none. (Plevyak et al., §3.2.3)
template <class T>
struct reply_place {
  enum class state : unsigned char { open, replied, dropped, by_ticket, taken };

  continuation<T>* holder = nullptr;  ///< The continuation, while the state is `open`.
  const fiber_view* fiber = running_fiber;
  /// counts.forks at a moment when no frame younger than this place had an open fork. As long as
  /// the same fiber runs on this rank and counts.forks has this value, no such frame has one.
  std::uint64_t forks = counts.forks;
  ticket_id ticket = 0;
  state is = state::open;
  room<stored<T>> value;
};

/// Errors that name the code that made a continuation; `made_at` is an address in it.
[[noreturn]] void throw_dropped(std::uint64_t made_at);
[[noreturn]] void throw_no_reply_left(std::uint64_t made_at);
void fail_dropped(ticket_id id, std::uint64_t made_at);

/// The parameters of a function or method that takes a continuation first.
template <class... P>
struct passes_continuation : std::false_type {};
template <class T, class... P>
struct passes_continuation<continuation<T>, P...> : std::true_type {
  using result = T;
};
template <class F>
struct continuation_passing : std::false_type {};
template <class R, class... P>
struct continuation_passing<R (*)(P...)> : passes_continuation<P...> {};
template <class R, class C, class... P>
struct continuation_passing<R (C::*)(P...)> : passes_continuation<P...> {};
template <class R, class C, class... P>
struct continuation_passing<R (C::*)(P...) const> : passes_continuation<P...> {};
template <class F>
  requires requires { &F::operator(); }
struct continuation_passing<F> : continuation_passing<decltype(&F::operator())> {};

}  // namespace detail

/// The right to answer a wait, once, by calling the continuation. It can be passed on, stored in
/// objects, and sent to other ranks as an argument; the answer goes straight to the fiber that
/// waits. Made by call_cc, rpc_cc and make_continuation. Movable.
///
/// If it is destroyed without having answered, the wait ends with continuation_error.
/// Source: Plevyak, Karamcheti, Zhang and Chien, §2 and §3.2.3.
template <class T>
class continuation {
 public:
  using value_type = T;

  /// Belongs to no wait.
  continuation() = default;
  continuation(continuation&& other) noexcept { steal(other); }
  continuation& operator=(continuation&& other) noexcept {
    if (this != &other) {
      drop();
      steal(other);
    }
    return *this;
  }
  ~continuation() { drop(); }

  /// False once it has answered or was moved from.
  explicit operator bool() const { return is_ == state::in_place || is_ == state::ticket; }

  /// Answers: the wait returns `value`. Never suspends. Errors: continuation_error when it has
  /// answered before or was moved from.
  template <class... V>
    requires(sizeof...(V) == (std::is_void_v<T> ? 0 : 1))
  void operator()(V&&... value) {
    detail::check_thread();
    if (!*this) detail::throw_no_reply_left(made_at_);
    // The continuation is used up only once the value exists: if the constructor of T throws, it
    // can still be called.
    if (is_ == state::in_place) {
      if constexpr (!std::is_void_v<T>) {
        ::new (static_cast<void*>(&place_->value.value)) T(std::forward<V>(value)...);
      }
      place_->is = place::state::replied;
    } else if constexpr (std::is_void_v<T>) {
      detail::send_result(ticket_, nullptr, 0);
    } else {
      detail::send_value<T>(ticket_, T(std::forward<V>(value)...));
    }
    is_ = state::empty;
  }
  /// Answers with an exception: the wait throws `failure`. Otherwise as operator().
  void fail(const std::exception_ptr& failure) {
    detail::check_thread();
    if (!*this) detail::throw_no_reply_left(made_at_);
    make_ticket();
    is_ = state::empty;
    detail::send_exception(ticket_, failure);
  }

  /// For implementers: a continuation for a place in a caller's frame, or for a ticket.
  continuation(detail::reply_place<T>& caller, std::uint64_t made_at)
      : place_(&caller), made_at_(made_at), is_(state::in_place) {
    caller.holder = this;
  }
  continuation(detail::ticket_id ticket, std::uint64_t made_at)
      : ticket_(ticket), made_at_(made_at), is_(state::ticket) {}
  void make_ticket() {
    if (is_ != state::in_place) return;
    place* from = place_;
    ticket_ = from->ticket = detail::ticket_open();
    from->is = place::state::by_ticket;
    is_ = state::ticket;
  }

  /// For implementers, when it is among arguments that are marshalled: after save() this one no
  /// longer has the right to answer.
  template <class Archive>
  void save(Archive& archive) const {
    auto* self = const_cast<continuation*>(this);
    self->make_ticket();
    archive(self->ticket_, self->made_at_);
    if (is_ == state::ticket) self->is_ = state::sent;
  }
  template <class Archive>
  void load(Archive& archive) {
    drop();
    archive(ticket_, made_at_);
    is_ = ticket_ != 0 ? state::ticket : state::empty;
  }

 private:
  using place = detail::reply_place<T>;
  enum class state : unsigned char { empty, in_place, ticket, sent };

  void steal(continuation& other) {
    // Only younger frames that cannot leave without the caller's frame may use its address. In any
    // other place the continuation needs a ticket.
    if (other.is_ == state::in_place && !is_below(*other.place_)) other.make_ticket();
    made_at_ = other.made_at_;
    is_ = std::exchange(other.is_, state::empty);
    if (is_ == state::in_place) {
      place_ = other.place_;
      place_->holder = this;
    } else {
      ticket_ = other.ticket_;
    }
  }
  /// True when this continuation lies in a frame that is younger than that of `p`, and no mark or
  /// open fork between the two lets that frame be cut off.
  bool is_below(place& p) const {
    const std::uintptr_t sp = detail::stack_pointer();
    const auto at = reinterpret_cast<std::uintptr_t>(&p);
    if (reinterpret_cast<std::uintptr_t>(this) - sp >= at - sp ||
        p.fiber != detail::running_fiber || detail::has_mark_in_frame_below(&p)) {
      return false;
    }
    if (p.forks != detail::counts.forks) [[unlikely]] {
      if (detail::has_fork_below(&p)) return false;
      p.forks = detail::counts.forks;
    }
    return true;
  }
  void drop() {
    if (is_ == state::in_place) place_->is = place::state::dropped;
    if (is_ == state::ticket) detail::fail_dropped(ticket_, made_at_);
    is_ = state::empty;
  }

  union {
    place* place_ = nullptr;
    detail::ticket_id ticket_;
  };
  std::uint64_t made_at_ = 0;
  state is_ = state::empty;
};

/// The bytes of a continuation mean the same on every rank once it has a ticket, and it gets one
/// when it leaves the frames of its caller.
template <class T>
inline constexpr bool travels<continuation<T>> = true;
namespace detail {
template <class T>
inline constexpr bool leaves_by_move<continuation<T>> = true;
}

/// Returns a continuation, and the future of its answer. Never suspends.
template <class T>
[[gnu::noinline]] std::pair<continuation<T>, future<T>> make_continuation() {
  const detail::ticket_id ticket = detail::ticket_open();
  return {continuation<T>(ticket, reinterpret_cast<std::uint64_t>(__builtin_return_address(0))),
          detail::future_access::of_ticket<future<T>>(ticket)};
}

/// Calls fn(continuation, arguments…), waits until somebody calls the continuation, and returns the
/// value that it was called with. If `fn`, or a function that it calls on this stack, calls the
/// continuation, call_cc costs a call and a return. Suspends: in `fn`, and when there is no answer
/// yet when `fn` returns. What `fn` throws before the continuation was called is thrown here.
/// Errors: continuation_error when the continuation was destroyed without an answer.
template <class F, class... A>
  requires detail::continuation_passing<std::decay_t<F>>::value
[[gnu::noinline]] auto call_cc(F&& fn, A&&... arguments) ->
    typename detail::continuation_passing<std::decay_t<F>>::result {
  using T = typename detail::continuation_passing<std::decay_t<F>>::result;
  using state = typename detail::reply_place<T>::state;
  const auto made_at = reinterpret_cast<std::uint64_t>(__builtin_return_address(0));
  detail::reply_place<T> place;
  // Destroys the value however call_cc is left, and drops a reply that nobody waits for any more.
  struct leave_place {
    detail::reply_place<T>& of;
    ~leave_place() {
      if constexpr (!std::is_void_v<T>) {
        if (of.is == state::replied) of.value.value.~T();
      }
      if (of.is == state::by_ticket) detail::ticket_drop(of.ticket);
    }
  } at_end{place};
  std::forward<F>(fn)(continuation<T>(place, made_at), std::forward<A>(arguments)...);
  if (place.is == state::open) place.holder->make_ticket();
  if (place.is == state::by_ticket) {
    place.is = state::taken;
    return detail::take_value<T>(place.ticket);
  }
  if (place.is == state::dropped) detail::throw_dropped(made_at);
  if constexpr (!std::is_void_v<T>) return std::move(place.value.value);
}

/// Calls fn(continuation, arguments…) on `rank` and returns the future of the answer, which comes
/// straight from the rank that gives it. Otherwise as rpc_ff.
template <class F, class... A>
  requires detail::continuation_passing<F>::value
auto rpc_cc(rank_t rank, F fn, A... arguments) {
  auto [answer, result] = make_continuation<typename detail::continuation_passing<F>::result>();
  rpc_ff(rank, fn, std::move(answer), std::move(arguments)...);
  return std::move(result);
}

/// call_cc of a method, on the object's rank; on this stack if that is the caller's rank. Suspends
/// and errors: as call_cc, and as global_ptr::call.
template <auto Method, class T, class... A>
  requires detail::continuation_passing<decltype(Method)>::value
auto call_cc(global_ptr<T> p, A... arguments) ->
    typename detail::continuation_passing<decltype(Method)>::result {
  using R = typename detail::continuation_passing<decltype(Method)>::result;
  using method = detail::checked_method<Method, T, continuation<R>, A...>;
  if (p.is_local()) {
    return call_cc([&](continuation<R> answer) {
      method::invoke(p.local(), std::move(answer), std::move(arguments)...);
    });
  }
  return rpc_cc(
             p.home(),
             [](continuation<R> answer, global_ptr<T> object, A... a) {
               method::invoke(object.local(), std::move(answer), std::move(a)...);
             },
             p, std::move(arguments)...)
      .get();
}

}  // namespace sojourn
