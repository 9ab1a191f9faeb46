// SPDX-License-Identifier: Apache-2.0
// The typed layer over marks: runs a callable under a mark, with its arguments and its result in
// the younger frame while it runs, and brings the result to the older side, in place or by ticket.
#pragma once

#include <cstdint>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/calls/nonblocking.hpp"
#include "sojourn/detail/choice.hpp"
#include "sojourn/detail/mark.hpp"
#include "sojourn/detail/result.hpp"
#include "sojourn/detail/thrown.hpp"

namespace sojourn::detail {

template <class F>
inline constexpr bool is_function_pointer =
    std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>;

/// A callable that is marked as one that never waits.
template <class F>
inline constexpr bool is_nonblocking = false;
template <class F>
inline constexpr bool is_nonblocking<nonblocking<F>> = true;

/// A function or a callable without captures: its frames refer to nothing older than themselves.
template <class F>
inline constexpr bool is_captureless =
    is_function_pointer<F> || (std::is_empty_v<F> && std::is_trivially_copyable_v<F>);
template <class F>
inline constexpr bool is_captureless<nonblocking<F>> = is_captureless<F>;

/// Results that the younger side returns in a register, as functions do.
template <class R>
inline constexpr bool in_register =
    std::is_integral_v<R> || std::is_enum_v<R> || std::is_pointer_v<R>;
template <class R>
std::uint64_t to_register(R value) {
  if constexpr (std::is_pointer_v<R>) {
    return reinterpret_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(value);
  }
}
template <class R>
R from_register(std::uint64_t word) {
  if constexpr (std::is_pointer_v<R>) {
    return reinterpret_cast<R>(word);
  } else {
    return static_cast<R>(word);
  }
}

/// Lies in the older frame; `F` and the arguments are copied into the younger one before they are
/// used, and the result is built there, so that the younger frames are complete without this.
template <class R, class F, class... A>
struct marked_frame : mark {
  std::tuple<A...> arguments;  ///< The first member, as mark::words_behind requires.
  [[no_unique_address]] F fn;
  /// Where the older side finds the result. This and `failure` come last and begin at whole words:
  /// they are the unwritten words of mark::words_behind.
  alignas(std::uint64_t) alignas(room<stored<R>>) room<stored<R>> result;
  room<std::exception_ptr> failure;  ///< Constructed when `threw`.

  template <class G, class... B>
  explicit marked_frame(G&& g, B&&... b)
      : arguments(std::forward<B>(b)...), fn(std::forward<G>(g)) {}

  /// Opens the mark and runs `fn` under it. Returns the result if it comes in a register: keep() is
  /// to store it.
  [[gnu::always_inline]] std::uint64_t run_under(mark_kind as) {
    // With a stricter alignment, padding comes first, which may hold anything.
    if constexpr (alignof(marked_frame) > alignof(std::uint64_t)) {
      return call_under(*this, as, &inner);
    } else {
      constexpr std::size_t word = sizeof(std::uint64_t);
      constexpr std::size_t rooms = (sizeof result + word - 1) / word * word + sizeof failure;
      constexpr std::size_t all = sizeof(marked_frame) - sizeof(mark);
      // Arguments too short for a pointer are followed by padding, which may hold anything.
      constexpr bool may_point = !is_captureless<F> || ((sizeof(A) >= word) || ...);
      return call_under(*this, as, &inner, {may_point ? all - rooms : 0, may_point ? rooms : all});
    }
  }
  [[gnu::always_inline]] void keep([[maybe_unused]] std::uint64_t returned) {
    if constexpr (in_register<R>) result.value = from_register<R>(returned);
  }

  /// Copies callable and arguments, runs, catches everything and leaves the catch block; only then
  /// asks whether the older side is here (rule 3 of ARCHITECTURE.md, Invariants).
  static std::uint64_t inner(mark* self) noexcept {
    auto* frame = static_cast<marked_frame*>(self);
    try {
      room<stored<R>> value;
      {
        F fn = std::move(frame->fn);
        std::tuple<A...> arguments = std::move(frame->arguments);
        if constexpr (std::is_void_v<R>) {
          std::apply(fn, std::move(arguments));
        } else {
          ::new (static_cast<void*>(&value.value)) R(std::apply(fn, std::move(arguments)));
        }
      }
      if (older_side_is_here(frame)) [[likely]] {
        running.youngest = frame->outer;
        if constexpr (in_register<R>) {
          return to_register(value.value);
        } else if constexpr (!std::is_void_v<R>) {
          ::new (static_cast<void*>(&frame->result.value)) R(std::move(value.value));
          value.value.~R();
        }
        return 0;
      }
      finish_elsewhere(value);
    } catch (const thrown_past&) {
      caught_past();
      hold_exception();
    } catch (...) {
      caught_past();
      hold_exception();
    }
    failed(frame);
    return 0;
  }

  /// The older side is not waiting in this call: the result goes by ticket.
  [[gnu::noinline, noreturn]] static void finish_elsewhere(room<stored<R>>& value) {
    note_activation_end();
    if constexpr (std::is_void_v<R>) {
      send_result(running_result(), nullptr, 0);
    } else {
      struct destroy_at_end {
        R& value;
        ~destroy_at_end() { value.~R(); }
      };
      const destroy_at_end at_end{value.value};
      send_value<R>(running_result(), std::move(value.value));
    }
    finish_piece();
  }

  [[gnu::noinline]] static void failed(marked_frame* frame) {
    if (older_side_is_here(frame)) {
      running.youngest = frame->outer;
      ::new (static_cast<void*>(&frame->failure.value)) std::exception_ptr(held_exception());
      frame->events |= threw;
      return;
    }
    note_activation_end();
    {
      std::exception_ptr thrown = held_exception();
      send_exception(running_result(), thrown);
    }
    finish_piece();
  }

  /// Deals with what happened besides a plain return; false when the result is to come by ticket.
  [[gnu::noinline]] bool settle() {
    if (events & was_cut) resumed_after_cut();
    if (events & (saved_exceptions | saved_methods)) restore_for_caller(*this);
    if (events & threw) {
      std::exception_ptr thrown = std::move(failure.value);
      failure.value.~exception_ptr();
      std::rethrow_exception(std::move(thrown));
    }
    return !(events & was_cut);
  }
};

template <mark_kind Kind, class R, class F, class... A>
[[gnu::always_inline]] inline R call_activation(F&& fn, A&&... arguments) {
  check_thread();
  marked_frame<R, std::decay_t<F>, std::decay_t<A>...> frame(std::forward<F>(fn),
                                                             std::forward<A>(arguments)...);
  const std::uint64_t returned = frame.run_under(Kind);
  if (frame.events != 0) [[unlikely]] {
    if (!frame.settle()) return take_value<R>(frame.ticket);
  }
  frame.keep(returned);
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
