// SPDX-License-Identifier: Apache-2.0
// Children: calls under a fork mark. When the callee blocks, it is cut off there, and the caller
// goes on.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/detail/activation.hpp"
#include "sojourn/detail/counts.hpp"
#include "sojourn/detail/fork_site.hpp"
#include "sojourn/detail/tasks.hpp"
#include "sojourn/detail/words.hpp"
#include "sojourn/future.hpp"

namespace sojourn::detail {

/// Reasons why a fork has to look closer: bits of counts_page::at_forks, which is mostly 0.
struct at_fork {
  static constexpr std::uint32_t on_heap = 1;  ///< Children have contexts of their own.
  static constexpr std::uint32_t first = 2;    ///< Other ranks do not know that this one forks.
  static constexpr std::uint32_t hungry = 4;   ///< A rank has nothing to do.
  static constexpr std::uint32_t tidy = 8;     ///< Much of the stack may be left by past calls.
  /// The last child that was given to a rank ran for less time than it cost to give it.
  static constexpr std::uint32_t too_small = 16;
  static constexpr std::uint32_t marked = 32;  ///< Forks are to have marks that lie in frames.
  /// The bits that matter to a fork of that kind. Only children that can leave their rank are worth
  /// telling others of, or tidying up for.
  static constexpr std::uint32_t seen_by(mark_kind kind) {
    return kind == mark_kind::fork ? on_heap | first | hungry | tidy | marked
                                   : on_heap | hungry | marked;
  }
};

/// How a child is begun: on this stack; with a context of its own (SOJOURN_EXECUTION=heap); or on
/// this stack, to leave at once for a rank that has nothing to do.
enum class child_way : std::uint8_t { in_place, on_heap, elsewhere };
/// The closer look: how to begin a child of that kind.
child_way attend_fork(mark_kind kind);

/// Clears the stack below its caller's frame. Words that earlier calls left there could remain in
/// parts of the child's frames that the child does not write; if such a word looked like an
/// address, the child could not leave.
void clear_room_for_child();
/// Called by a child that begins `elsewhere`, in its own frames. Returns on the rank that the child
/// was given to, and tells when it began there (ticks()); or returns 0 on this rank, if the other
/// has work again.
std::uint64_t leave_as_child();
/// Called when that child has ended: the rank that ran it now knows if it was worth sending.
void left_child_ends(std::uint64_t began);

/// What a child that is to leave calls instead of its function.
template <class F>
struct leaving_child {
  F fn;
  struct time_away {
    std::uint64_t began = leave_as_child();
    ~time_away() { left_child_ends(began); }
  };
  template <class... A>
  decltype(auto) operator()(A&&... arguments) {
    [[maybe_unused]] const time_away away;
    return fn(std::forward<A>(arguments)...);
  }
};

/// A child that will run with a context of its own: the callable and arguments, as the caller of a
/// remote function would send them.
template <class R, class F, class... A>
struct heap_child : task {
  F fn;
  std::tuple<A...> arguments;
  ticket_id result;
  referrer tie;  ///< Used by a child that refers to its caller's frames.

  /// When the result is sent, the callable and the arguments are already destroyed, as after a call
  /// in place.
  static void run(task* self) {
    std::unique_ptr<heap_child> child(static_cast<heap_child*>(self));
    send_outcome<R>(child->result, [&]() -> R {
      F fn = std::move(child->fn);
      std::tuple<A...> arguments = std::move(child->arguments);
      return std::apply(fn, std::move(arguments));
    });
  }
};

template <mark_kind Kind, class R>
future<R> future_of_child(ticket_id ticket) {
  return Kind == mark_kind::fork_by_reference ? future_access::of_child<future<R>>(ticket)
                                              : future_access::of_ticket<future<R>>(ticket);
}

/// The future of a child that has returned in place.
template <class R, class Frame>
[[gnu::always_inline]] inline future<R> future_in_place(Frame& frame, std::uint64_t returned) {
  frame.keep(returned);
  if constexpr (std::is_void_v<R>) {
    return future<R>::of_value();
  } else {
    struct destroy_result {
      R& value;
      ~destroy_result() {
        if constexpr (!std::is_trivially_destructible_v<R>) value.~R();
      }
    } at_end{frame.result.value};
    return future<R>::of_value(std::move(frame.result.value));
  }
}

/// The future of a child that did not just return: one that blocked, or threw before anybody
/// waited for it.
template <mark_kind Kind, class R, class Frame>
[[gnu::noinline]] future<R> future_after_events(Frame& frame, std::uint64_t returned) {
  if (frame.events == mark::was_cut) [[likely]] {
    resumed_after_cut();
    return future_of_child<Kind, R>(frame.ticket);
  }
  if (frame.events & mark::threw) {
    const std::exception_ptr thrown = std::move(frame.failure.value);
    frame.failure.value.~exception_ptr();
    frame.events &= static_cast<std::uint8_t>(~mark::threw);
    frame.settle();
    const ticket_id ticket = ticket_open();
    send_exception(ticket, thrown);
    return future_access::of_ticket<future<R>>(ticket);
  }
  if (!frame.settle()) return future_of_child<Kind, R>(frame.ticket);
  return future_in_place<R>(frame, returned);
}

/// Calls a child under a mark that lies in the caller's frame.
template <mark_kind Kind, class R, class F, class... A>
[[gnu::always_inline]] inline future<R> call_under_mark(F&& fn, A&&... arguments) {
  marked_frame<R, std::decay_t<F>, std::decay_t<A>...> frame(std::forward<F>(fn),
                                                             std::forward<A>(arguments)...);
  const std::uint64_t returned = frame.run_under(Kind);
  if (frame.events != 0) [[unlikely]]
    return future_after_events<Kind, R>(frame, returned);
  return future_in_place<R>(frame, returned);
}

/// Counts a fork that may_have_forks() need not tell of.
inline void count_marked_fork() {
  ++counts.forks;
  ++running.forks_before;
  ++sojourn_fork_links.others;
}

/// Begins a child in the way that the closer look chooses.
template <mark_kind Kind, class R, class F, class... A>
[[gnu::noinline]] future<R> start_after_look(F fn, A... arguments) {
  check_thread();
  count_marked_fork();
  const std::uint32_t seen = counts.at_forks & at_fork::seen_by(Kind);
  const child_way way = seen != 0 ? attend_fork(Kind) : child_way::in_place;
  constexpr std::uint32_t looks_for_ranks = at_fork::first | at_fork::hungry | at_fork::tidy;
  if ((seen & looks_for_ranks) != 0 && way != child_way::on_heap) clear_room_for_child();
  if (way == child_way::in_place) {
    return call_under_mark<Kind, R>(std::move(fn), std::move(arguments)...);
  }
  if constexpr (Kind == mark_kind::fork) {
    if (way == child_way::elsewhere) {
      return call_under_mark<Kind, R>(leaving_child<F>{std::move(fn)}, std::move(arguments)...);
    }
  }
  using child = heap_child<R, F, A...>;
  const ticket_id result = ticket_open();
  auto* begun =
      new child{{&child::run, join_scope()}, std::move(fn), {std::move(arguments)...}, result, {}};
  if constexpr (is_by_reference(Kind)) {
    refer_to_caller(begun->tie);
    begun->refers = &begun->tie;
  }
  post_task_first(begun);
  return future_of_child<Kind, R>(result);
}

template <class R>
constexpr std::uint8_t result_bytes() {
  if constexpr (std::is_void_v<R>) {
    return 0;
  } else {
    return sizeof(R);
  }
}

/// Results that a child returns in a register, and that a ticket holds as they are (take_value).
template <class R>
inline constexpr bool returns_in_register =
    (std::is_void_v<R> || std::is_integral_v<R> || std::is_enum_v<R> || std::is_same_v<R, float> ||
     std::is_same_v<R, double>) &&
    result_bytes<R>() <= sizeof(std::uint64_t);

/// The function of a child whose callable and arguments are moved to its own frames.
template <class R, class Given>
R run_child(Given* given) {
  return [](Given mine) -> R {
    return std::apply(std::move(mine.fn), std::move(mine.arguments));
  }(std::move(*given));
}
template <class F, class... A>
struct given_to_child {
  F fn;
  std::tuple<A...> arguments;
};

template <class P>
inline constexpr bool is_word = in_register<std::remove_cv_t<P>> && sizeof(P) <= 8;
/// True for a function whose parameters are all passed in registers, and whose address is in one
/// more: it is called directly. (Other arguments would be converted as part of the call, by code
/// that may itself wait.)
template <class R, class F, class... A>
struct called_directly : std::false_type {};
template <class R, class... P, class... A>
  requires(sizeof...(P) <= 5 && sizeof...(P) == sizeof...(A))
struct called_directly<R, R (*)(P...), A...>
    : std::bool_constant<returns_in_register<R> && (is_word<P> && ...) &&
                         ((std::is_arithmetic_v<A> || std::is_same_v<A, std::remove_cv_t<P>>) &&
                          ...)> {};

/// The future of a child that threw in place. Call it in the catch block.
template <class R>
[[gnu::noinline, gnu::cold]] future<R> future_of_failure() {
  forget_fork_links();  // the exception has removed the frames in which the links lay
  const ticket_id ticket = ticket_open();
  send_exception(ticket, caught_past());
  return future_access::of_ticket<future<R>>(ticket);
}
/// What a fork's handler does when the child was cut off. Only the floating-point control word may
/// differ from what it was at the call.
template <class Site, mark_kind Kind, class R>
[[gnu::noinline, gnu::cold]] future<R> future_after_cut(ticket_id result, std::uint32_t fp) {
  handler_goes_on(fp);
  Site::site.entry = Site::site.child_was_cut() ? Site::linked : Site::site.unlinked;
  return future_of_child<Kind, R>(result);
}

/// Calls the child's function on this stack as a fork whose mark is the handler for `cut` below
/// (boundary.hpp): a plain call, before which only the floating-point control word is stored. The
/// site may have it made by way of a link (fork_site.hpp).
template <mark_kind Kind, class R, class Site, class... A>
[[gnu::always_inline]] inline future<R> call_in_place(A... arguments) {
  using cut = cut_child<Kind, result_bytes<R>(), std::is_floating_point_v<R>>;
  // Volatile, to be in memory: it takes no register from values that live across the call.
  volatile fp_at_call fp;
  save_fp(fp);
  // Counted only now, because code that copies the arguments may look for open forks.
  ++counts.forks;
  try {
#if SOJOURN_FORK_LINKS
    auto* const& child = Site::site.entry;
#else
    // Hides from the compiler that this is always the same function. So the compiler does not
    // inline the call, assumes that it may throw, and preserves the registers that the ABI names.
    auto* child = Site::site.entry;
    asm("" : "+r"(child));
#endif
    if constexpr (std::is_void_v<R>) {
      child(arguments...);
      return future<R>::of_value();
    } else {
      return future<R>::of_value(child(arguments...));
    }
  } catch (const cut& at) {
    return future_after_cut<Site, Kind, R>(at.result, fp.word);
  } catch (const thrown_past&) {
    return future_of_failure<R>();
  } catch (...) {
    return future_of_failure<R>();
  }
}

/// The child's function for a function pointer whose value is known only at the call: a jump.
template <class R, class... P>
R run_function(P... arguments, R (*fn)(P...)) {
  return fn(arguments...);
}
template <mark_kind Kind, class R, class... P, class... A>
[[gnu::always_inline]] inline future<R> call_of_function(R (*fn)(P...), A&&... arguments) {
  using site = child_site<Kind, &run_function<R, P...>>;
  return call_in_place<Kind, R, site, std::remove_cv_t<P>..., R (*)(P...)>(
      std::forward<A>(arguments)..., fn);
}

/// A child whose callable and arguments are passed in registers, as words: the caller may go on
/// without the child, so nothing of the child may lie in the caller's frame. They are passed as
/// words because the compiler passes some class types in memory.
template <class R, class Words, class F, class... A>
struct child_of_words;
template <class R, std::size_t... I, class F, class... A>
struct child_of_words<R, std::index_sequence<I...>, F, A...> {
  using words = std::array<std::uint64_t, sizeof...(I)>;

  static R run(std::enable_if_t<I == I, std::uint64_t>... word) {
    const words all{word...};
    const std::uint64_t* from = all.data();
    F fn = take_words<F>(from);
    return std::apply(std::move(fn), std::tuple<A...>{take_words<A>(from)...});
  }
  /// Calls fn(arguments…) as a fork.
  template <mark_kind Kind>
  [[gnu::always_inline]] static future<R> call(const F& fn, const A&... arguments) {
    words all{};
    std::uint64_t* to = all.data();
    put_words(to, fn);
    (put_words(to, arguments), ...);
    return call_in_place<Kind, R, child_site<Kind, &run>>(all[I]...);
  }
};

/// Calls fn(arguments…) on this stack. If the call blocks, it is cut off, and this returns a future
/// with a ticket for its result. After Plevyak et al., Hybrid Execution, §3.2.2, where each caller
/// had to be compiled for that; and Goldstein, Schauser and Culler, Lazy Threads (1996), where a
/// parent whose child was cut off is resumed at a second address.
template <mark_kind Kind, class R, class F, class... A>
[[gnu::always_inline]] inline future<R> call_forked(F&& fn, A&&... arguments) {
  using callable = std::decay_t<F>;
  const exception_globals* in_flight = running.exceptions;
  // When the caller is handling an exception or is inside a method, this takes a mark in the frame,
  // which keeps the caller's exceptions and method count.
  if ((counts.at_forks & at_fork::seen_by(Kind)) != 0 ||
      (counts.methods & method_guard::depth_mask) != 0 ||
      (reinterpret_cast<std::uintptr_t>(in_flight->caught) | in_flight->uncaught) != 0)
      [[unlikely]] {
    return start_after_look<Kind, R, callable, std::decay_t<A>...>(std::forward<F>(fn),
                                                                   std::forward<A>(arguments)...);
  }
#if SOJOURN_FORKS_BY_TABLES
  if constexpr (called_directly<R, callable, std::decay_t<A>...>::value) {
    return call_of_function<Kind>(fn, std::forward<A>(arguments)...);
  } else if constexpr (returns_in_register<R> && fit_in_registers<callable, std::decay_t<A>...> &&
                       !(std::is_volatile_v<std::remove_reference_t<A>> || ...)) {
    constexpr std::size_t words = (words_of<callable>() + ... + words_of<std::decay_t<A>>());
    using child = child_of_words<R, std::make_index_sequence<words>, callable, std::decay_t<A>...>;
    return child::template call<Kind>(fn, arguments...);
  } else if constexpr (returns_in_register<R>) {
    using given = given_to_child<callable, std::decay_t<A>...>;
    given all{std::forward<F>(fn), {std::forward<A>(arguments)...}};
    return call_in_place<Kind, R, child_site<Kind, &run_child<R, given>>>(&all);
  }
#endif
  count_marked_fork();
  return call_under_mark<Kind, R>(std::forward<F>(fn), std::forward<A>(arguments)...);
}

}  // namespace sojourn::detail
