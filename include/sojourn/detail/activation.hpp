// SPDX-License-Identifier: Apache-2.0
// The typed skin over marks: runs a callable under a mark, with its arguments and its result in
// the younger frame while it runs, and brings the result to the older side however it comes.
#pragma once

#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/detail/mark.hpp"
#include "sojourn/detail/result.hpp"

namespace sojourn::detail {

template <class F>
inline constexpr bool is_function_pointer =
    std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>;

/// A function or a callable without captures: its frames refer to nothing older than themselves.
template <class F>
inline constexpr bool is_captureless =
    is_function_pointer<F> || (std::is_empty_v<F> && std::is_trivially_copyable_v<F>);

/// Lies in the older frame; `F` and the arguments are copied into the younger one before they are
/// used, and the result is built there, so that the younger frames are complete without this.
template <class R, class F, class... A>
struct marked_frame : mark {
  F fn;
  std::tuple<A...> arguments;
  room<stored<R>> result;
  std::exception_ptr failure;

  template <class G, class... B>
  explicit marked_frame(G&& g, B&&... b)
      : fn(std::forward<G>(g)), arguments(std::forward<B>(b)...) {}

  /// Copies, runs, catches everything and leaves the catch block; then compares (CUT.md, Finish).
  static void inner(void* self) noexcept {
    auto* frame = static_cast<marked_frame*>(self);
    std::exception_ptr failure;
    room<stored<R>> result;
    try {
      F fn = std::move(frame->fn);
      std::tuple<A...> arguments = std::move(frame->arguments);
      if constexpr (std::is_void_v<R>) {
        std::apply(fn, std::move(arguments));
      } else {
        ::new (static_cast<void*>(&result.value)) R(std::apply(fn, std::move(arguments)));
      }
    } catch (...) {
      failure = std::current_exception();
    }
    if (older_side_is_here(frame)) [[likely]] {
      running.youngest = frame->outer;
      if (failure != nullptr) [[unlikely]] {
        frame->failure = std::move(failure);
        frame->events |= threw;
      } else if constexpr (!std::is_void_v<R>) {
        ::new (static_cast<void*>(&frame->result.value)) R(std::move(result.value));
        result.value.~R();
      }
      return;
    }
    if (failure != nullptr) {
      send_exception(running_result(), failure);
      failure = nullptr;
    } else if constexpr (std::is_void_v<R>) {
      send_result(running_result(), nullptr, 0);
    } else {
      send_value<R>(running_result(), std::move(result.value));
      result.value.~R();
    }
    finish_piece();
  }

  /// What happened besides a plain return; `false` when the result is to come by ticket.
  [[gnu::noinline]] bool settle() {
    if (events & saved_exceptions) restore_exceptions(*this);
    if (events & threw) std::rethrow_exception(std::move(failure));
    return !(events & was_cut);
  }
};

template <mark_kind Kind, class R, class F, class... A>
[[gnu::always_inline]] inline R call_activation(F&& fn, A&&... arguments) {
  marked_frame<R, std::decay_t<F>, std::decay_t<A>...> frame(std::forward<F>(fn),
                                                             std::forward<A>(arguments)...);
  call_under(frame, Kind, &frame.inner, &frame);
  if (frame.events != 0) [[unlikely]] {
    if (!frame.settle()) return take_value<R>(frame.ticket);
  }
  if constexpr (!std::is_void_v<R>) {
    if constexpr (std::is_trivially_destructible_v<R>) {
      return std::move(frame.result.value);
    } else {
      struct destroy_result {
        R& value;
        ~destroy_result() { value.~R(); }
      } destroyer{frame.result.value};
      return std::move(frame.result.value);
    }
  }
}

}  // namespace sojourn::detail
