// SPDX-License-Identifier: Apache-2.0
// Waiting for the first of several futures. The others stay as they are: their results may be taken
// later, or waited for again.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sojourn/future.hpp"
#include "sojourn/waiting/sleep.hpp"

namespace sojourn {

/// What touch_any() returns when it is given no futures.
inline constexpr std::size_t none_of_them = ~std::size_t{0};

/// Suspends until one of them is ready, and returns which: the one that stands first, if several
/// are. An exception is a result, too. Takes no result. The fiber waits for all of the results at
/// once and is woken by the first. Given no futures, returns `none_of_them` at once. Looks at the
/// futures in order, up to one that is ready, and suspends only if none is. Requires: each is
/// valid(). Suspends: unless one is ready. Errors: as future::wait().
template <class... T>
std::size_t touch_any(future<T>&... futures) {
  if constexpr (sizeof...(T) == 0) {
    return none_of_them;
  } else {
    return detail::tickets_wait_any(detail::tickets_of<T...>(futures...).range(), detail::never_ns);
  }
}
/// The same for any number of futures of one type.
template <class T, std::size_t Extent>
std::size_t touch_any(std::span<future<T>, Extent> futures) {
  if (futures.empty()) return none_of_them;
  return detail::tickets_wait_any(detail::range_of<T>(futures), detail::never_ns);
}

/// The futures that when_any was given, and which of them is ready.
template <class Futures>
struct when_any_result {
  std::size_t index;
  Futures futures;  ///< A std::tuple or std::vector. Each is valid().
};

/// The first of several futures: a future of a when_any_result. It owns the futures: it may move
/// with the frames that hold it if the futures may, and destroying it destroys them. Movable.
template <class Futures>
class [[nodiscard]] any_future {
 public:
  using value_type = when_any_result<Futures>;

  /// Has no futures: valid() is false.
  any_future() = default;
  explicit any_future(Futures futures) : futures_(std::move(futures)), is_valid_(1) {}
  any_future(any_future&& other) noexcept
      : futures_(std::move(other.futures_)), is_valid_(std::exchange(other.is_valid_, 0)) {}
  any_future& operator=(any_future&& other) noexcept {
    futures_ = std::move(other.futures_);
    is_valid_ = std::exchange(other.is_valid_, 0);
    return *this;
  }

  /// False after get(), then() or a move.
  bool valid() const { return is_valid_ != 0; }

  /// True when get() would not wait. Never suspends. Requires: valid().
  bool ready() {
    check();
    return with_range([](const detail::ticket_range& all) {
      return all.count == 0 || detail::first_ticket_ready(all) != all.count;
    });
  }

  /// Suspends until one of the futures is ready. Requires: valid(). Errors: as future::wait().
  void wait() { (void)first(detail::never_ns); }

  /// The same, but waits little longer than until `time`; returns ready(). This stays valid. If
  /// `time` is past, other fibers run once.
  template <class Duration>
  bool wait_until(std::chrono::time_point<std::chrono::steady_clock, Duration> time) {
    return first(detail::ns_of(time)) != not_ready;
  }
  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> span) {
    return first(detail::ns_after(span)) != not_ready;
  }

  /// Suspends until one of the futures is ready, and returns all of them. No exception of a result
  /// is thrown here: get() of that future does. Requires: valid(); it is not afterwards.
  when_any_result<Futures> get() {
    const std::size_t index = first(detail::never_ns);
    is_valid_ = 0;
    return {index, std::move(futures_)};
  }

  /// As future::then: calls fn(when_any_result) in a fiber of its own once a future is ready.
  template <class F>
  auto then(F fn) {
    check();
    return future<void>::of_value().then(
        [fn = std::move(fn), all = std::move(*this)]() mutable { return fn(all.get()); });
  }

 private:
  static constexpr std::size_t not_ready = none_of_them - 1;

  void check() const {
    if (is_valid_ == 0) {
      throw error(
          "any_future: there are no futures to wait for (it was moved from, or get() was "
          "called before)");
    }
  }
  template <class Fn>
  auto with_range(Fn fn) {
    if constexpr (requires { std::span(futures_); }) {
      return fn(detail::range_of(std::span(futures_)));
    } else if constexpr (std::tuple_size_v<Futures> == 0) {
      return fn(detail::ticket_range{});
    } else {
      return std::apply(
          [&fn]<class... T>(future<T>&... each) {
            return fn(detail::tickets_of<T...>(each...).range());
          },
          futures_);
    }
  }
  std::size_t first(std::uint64_t deadline_ns) {
    check();
    return with_range([deadline_ns](const detail::ticket_range& all) {
      if (all.count == 0) return none_of_them;
      const std::size_t index = detail::tickets_wait_any(all, deadline_ns);
      return index == all.count ? not_ready : index;
    });
  }

  Futures futures_;
  std::uint64_t is_valid_ = 0;  // as wide as its alignment, as future::state
};

/// Returns the future of the first of them that is ready, and of all of them. Never suspends.
template <class... T>
any_future<std::tuple<future<T>...>> when_any(future<T>&&... futures) {
  return any_future(std::tuple<future<T>...>(std::move(futures)...));
}
/// The same for any number of futures of one type.
template <class T>
any_future<std::vector<future<T>>> when_any(std::vector<future<T>> futures) {
  return any_future(std::move(futures));
}

}  // namespace sojourn
