// SPDX-License-Identifier: Apache-2.0
// Futures: a result that is here, or a ticket for one that will come.
//
// A future may be made on one rank and read on another (docs/examples/futures.cpp):
//
//     long add_up(global_ptr<store_room> near, global_ptr<store_room> far) {
//       future<long> first = near.async<&store_room::count>();  // goes on while this one moves
//       long second = far.call<&store_room::count>(via::migrate);
//       return first.get() + second;  // taken on the rank of `far`
//     }
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sojourn/detail/future_access.hpp"
#include "sojourn/detail/result.hpp"
#include "sojourn/detail/tasks.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/waiting/sleep.hpp"

namespace sojourn {

/// The result of something started with `rpc`, `async`, `fork` or `then`. Movable; may outlive the
/// frame it was made in and may travel with the frames that hold it. Waiting suspends the fiber,
/// never the rank. A future that is destroyed unread drops its result; if it is that of a child
/// which refers to the frames of its caller (fork), the destructor waits for the child first.
template <class T>
class [[nodiscard]] future {
 public:
  using value_type = T;

  /// No result to wait for; valid() is false.
  future() : ticket_(0) {}
  future(future&& other) noexcept : ticket_(0) { steal(other); }
  future& operator=(future&& other) noexcept {
    if (this != &other) {
      reset();
      steal(other);
    }
    return *this;
  }
  ~future() { reset(); }

  /// False after get(), then() or a move.
  bool valid() const { return state_ != state::empty; }

  /// True when get() would not wait. Never suspends.
  bool ready() const {
    return state_ == state::value || (has_ticket() && detail::ticket_ready(ticket_));
  }

  /// Suspends until the result is here. Requires: valid().
  void wait() {
    check();
    if (has_ticket()) detail::ticket_wait(ticket_);
  }

  /// The same, but waits little longer than until `time`; returns ready(). The future stays valid,
  /// and takes a result that comes later. If `time` is past, other fibers run once. Requires:
  /// valid(). Suspends: unless ready().
  template <class Duration>
  bool wait_until(std::chrono::time_point<std::chrono::steady_clock, Duration> time) {
    return wait_until_ns(detail::ns_of(time));
  }
  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> span) {
    return wait_until_ns(detail::ns_after(span));
  }

  /// Suspends until the result is here and moves it out, or rethrows what the call threw.
  /// Requires: valid(); it is not afterwards.
  T get() {
    if (state_ == state::value) [[likely]] {
      state_ = state::empty;
      if constexpr (!std::is_void_v<T>) {
        T result = std::move(value_.value);
        value_.value.~T();
        return result;
      } else {
        return;
      }
    }
    return take(std::exchange(state_, state::empty), ticket_);
  }

  /// Calls fn(result) on this rank once the result is here, in a fiber of its own, and returns the
  /// future of what `fn` returns. When the result is an exception, `fn` is not called, and the
  /// returned future gets the exception. Never suspends. `fn` stays on this rank and may capture.
  /// Requires: valid(), which is false afterwards.
  template <class F>
  auto then(F fn) {
    check();
    using R = decltype(detail::call_with(fn, std::declval<future&>()));
    detail::ticket_id result = detail::ticket_open();
    struct continuation : detail::task {
      future source;
      F fn;
      detail::ticket_id result;
      static void run(detail::task* self) {
        std::unique_ptr<continuation> c(static_cast<continuation*>(self));
        detail::send_outcome<R>(c->result,
                                [&]() -> R { return detail::call_with(c->fn, c->source); });
      }
    };
    bool by_ticket = has_ticket();
    auto* c = new continuation{
        {&continuation::run, detail::join_scope()}, std::move(*this), std::move(fn), result};
    if (by_ticket) {
      detail::ticket_adopt(c->source.ticket_);
      detail::ticket_on_ready(
          c->source.ticket_,
          [](void* posted) { detail::post_task(static_cast<continuation*>(posted)); }, c);
    } else {
      detail::post_task(c);
    }
    return detail::future_access::of_ticket<future<R>>(result);
  }

  /// A future that holds its value. For implementers.
  template <class... V>
  static future of_value(V&&... value) {
    future f;
    if constexpr (!std::is_void_v<T>) {
      ::new (static_cast<void*>(&f.value_.value)) T(std::forward<V>(value)...);
    }
    f.state_ = state::value;
    return f;
  }

 private:
  friend struct detail::future_access;

  // As wide as its alignment, so that the future has no padding. Padding would hold bytes of
  // earlier calls, and one that looks like an address could keep the frame from going to an idle
  // rank.
  enum class state : std::uint64_t { empty, value, ticket, child };
  bool has_ticket() const { return state_ >= state::ticket; }

  static future of_ticket(detail::ticket_id ticket) {
    future f;
    f.ticket_ = ticket;
    f.state_ = state::ticket;
    return f;
  }
  /// Its ticket; null when it holds its value. Errors: as get().
  detail::ticket_id* to_wait_for() {
    check();
    return has_ticket() ? &ticket_ : nullptr;
  }
  /// A future of a child that refers to frames of the caller.
  static future of_child(detail::ticket_id ticket) {
    future f;
    f.ticket_ = ticket;
    f.state_ = state::child;
    return f;
  }

  bool wait_until_ns(std::uint64_t deadline_ns) {
    check();
    if (!has_ticket()) return true;
    const detail::ticket_range mine{
        &ticket_, 1, [](void* of, std::size_t) { return static_cast<detail::ticket_id*>(of); }};
    return detail::tickets_wait_any(mine, deadline_ns) == 0;
  }

  // Takes no address of the future, so that the compiler can keep the future in registers.
  [[gnu::noinline]] static T take(state was, detail::ticket_id ticket) {
    check(was);
    return detail::take_value<T>(ticket);
  }
  static void check(state is) {
    if (is == state::empty) {
      throw error(
          "future: there is no result to wait for (it was moved from, or get() was called "
          "before)");
    }
  }
  void check() const { check(state_); }
  void reset() {
    if (state_ == state::value) {
      if constexpr (!std::is_void_v<T>) value_.value.~T();
    } else if (has_ticket()) {
      if (state_ == state::child) detail::ticket_wait(ticket_);
      detail::ticket_drop(ticket_);
    }
    state_ = state::empty;
  }
  void steal(future& other) {
    state_ = other.state_;
    if (state_ == state::value) {
      if constexpr (!std::is_void_v<T>) {
        ::new (static_cast<void*>(&value_.value)) T(std::move(other.value_.value));
        other.value_.value.~T();
      }
    } else if (has_ticket()) {
      ticket_ = other.ticket_;
    }
    other.state_ = state::empty;
  }

  union {
    mutable detail::ticket_id ticket_;  // a ticket of this rank once anyone has looked at it
    detail::room<detail::stored<T>> value_;
  };
  state state_ = state::empty;
};

namespace detail {

/// The tickets of some futures.
template <class... T>
class tickets_of {
 public:
  explicit tickets_of(future<T>&... futures) : all_{future_access::ticket_of(futures)...} {}
  ticket_range range() {
    return {&all_, sizeof...(T), [](void* of, std::size_t i) {
              return (*static_cast<std::array<ticket_id*, sizeof...(T)>*>(of))[i];
            }};
  }

 private:
  std::array<ticket_id*, sizeof...(T)> all_;
};
template <class T>
ticket_range range_of(std::span<future<T>> futures) {
  return {futures.data(), futures.size(), [](void* of, std::size_t i) {
            return future_access::ticket_of(static_cast<future<T>*>(of)[i]);
          }};
}

}  // namespace detail

/// Suspends until all of them are ready; it suspends and is woken only once, however many are not
/// ready yet. Takes no result. Requires: each is valid(). Source: Plevyak et al., §3.1.
template <class... T>
void touch(future<T>&... futures) {
  detail::tickets_wait(detail::tickets_of<T...>(futures...).range());
}
/// The same for any number of futures of one type.
template <class T, std::size_t Extent>
void touch(std::span<future<T>, Extent> futures) {
  detail::tickets_wait(detail::range_of<T>(futures));
}

/// Returns the future of all results, in order; void becomes std::monostate. Never suspends.
template <class... T>
auto when_all(future<T>&&... futures) {
  using all = std::tuple<std::conditional_t<std::is_void_v<T>, std::monostate, T>...>;
  auto get_one = []<class U>(future<U>& f) {
    if constexpr (std::is_void_v<U>) {
      f.get();
      return std::monostate{};
    } else {
      return f.get();
    }
  };
  return future<void>::of_value().then(
      [get_one, held = std::tuple<future<T>...>(std::move(futures)...)]() mutable -> all {
        return std::apply([&](auto&... f) { return all{get_one(f)...}; }, held);
      });
}

/// The same for any number of futures of one type. future<void>s give a future<void>.
template <class T>
auto when_all(std::vector<future<T>> futures) {
  using all = std::conditional_t<std::is_void_v<T>, void, std::vector<detail::stored<T>>>;
  return future<void>::of_value().then([held = std::move(futures)]() mutable -> all {
    if constexpr (std::is_void_v<T>) {
      for (auto& f : held) f.get();
    } else {
      all results;
      results.reserve(held.size());
      for (auto& f : held) results.push_back(f.get());
      return results;
    }
  });
}

}  // namespace sojourn
