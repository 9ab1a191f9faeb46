// SPDX-License-Identifier: Apache-2.0
// Children: calls under a fork mark, which leaves the caller to go on when the callee blocks.
#pragma once

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/counters.hpp"
#include "sojourn/detail/activation.hpp"
#include "sojourn/detail/tasks.hpp"
#include "sojourn/future.hpp"

namespace sojourn::detail {

/// Why a fork looks closer: bits of counts_page::at_forks, which is 0 mostly.
struct at_fork {
  static constexpr std::uint32_t on_heap = 1;  ///< Children have contexts of their own.
  static constexpr std::uint32_t first = 2;    ///< Other ranks do not know that this one forks.
  static constexpr std::uint32_t hungry = 4;   ///< A rank has nothing to do.
  static constexpr std::uint32_t tidy = 8;     ///< The stack may hold much of calls that returned.
  /// The child that a rank was given last kept it busy for less than giving it had cost.
  static constexpr std::uint32_t too_small = 16;
  /// Of the first child that could leave its rank, others are told.
  static constexpr std::uint32_t seen_by(mark_kind kind) {
    return kind == mark_kind::fork ? on_heap | first | hungry | tidy : on_heap | hungry;
  }
};

/// How a child is begun: on this stack; with a context of its own (SOJOURN_EXECUTION=heap); or on
/// this stack, to leave at once for a rank that has nothing to do.
enum class child_way : std::uint8_t { in_place, on_heap, elsewhere };
/// Looks closer.
child_way attend_fork(mark_kind kind);

/// Clears the stack below its caller's frame: words that earlier calls left there would lie in room
/// that a child's frames do not write, and keep it here when they look like addresses.
void clear_room_for_child();
/// Said by a child that begins `elsewhere`, in its own frames. It goes on with that on the rank
/// that it was given to, or here, where that has work again. Returns when it began there: ticks(),
/// or 0.
std::uint64_t leave_as_child();
/// The rank that ran it knows from then on whether it was worth its way.
void left_child_ends(std::uint64_t began);

/// A child that is to leave, in place of its function.
template <class F>
struct leaving_child {
  F fn;
  struct stretch_of_time {
    std::uint64_t began = leave_as_child();
    ~stretch_of_time() { left_child_ends(began); }
  };
  template <class... A>
  decltype(auto) operator()(A&&... arguments) {
    [[maybe_unused]] const stretch_of_time away;
    return fn(std::forward<A>(arguments)...);
  }
};

/// A child of its own context before it runs: what the caller of a remote function would send.
template <class R, class F, class... A>
struct heap_child : task {
  F fn;
  std::tuple<A...> arguments;
  ticket_id result;
  referrer tie;  ///< Of one by reference.

  /// Whoever has the result finds the callable and the arguments destroyed, as of a call in place.
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
  return Kind == mark_kind::fork_by_reference ? future<R>::of_child(ticket)
                                              : future<R>::of_ticket(ticket);
}

/// The future of a child that has returned, in its place.
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
    const ticket_id ticket = ticket_open();
    send_exception(ticket, frame.failure.value);
    frame.failure.value.~exception_ptr();
    frame.events &= static_cast<std::uint8_t>(~mark::threw);
    frame.settle();
    return future<R>::of_ticket(ticket);
  }
  if (!frame.settle()) return future_of_child<Kind, R>(frame.ticket);
  return future_in_place<R>(frame, returned);
}

/// Begins a child in another way than in place.
template <mark_kind Kind, class R, class F, class... A>
[[gnu::noinline]] future<R> start_apart(child_way way, F fn, A... arguments) {
  if constexpr (Kind == mark_kind::fork) {
    if (way == child_way::elsewhere) {
      marked_frame<R, leaving_child<F>, A...> frame(leaving_child<F>{std::move(fn)},
                                                    std::move(arguments)...);
      clear_room_for_child();
      const std::uint64_t returned = frame.run_under(Kind);
      if (frame.events != 0) return future_after_events<Kind, R>(frame, returned);
      return future_in_place<R>(frame, returned);
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

/// Calls fn(arguments…) on this stack under a mark. When it blocks it is cut off, and this returns
/// with a ticket for its result. Plevyak et al., Hybrid Execution, §3.2.2, where each caller had to
/// be compiled for that.
template <mark_kind Kind, class R, class F, class... A>
[[gnu::always_inline]] inline future<R> call_forked(F&& fn, A&&... arguments) {
  ++counts.forks;
  if ((counts.at_forks & at_fork::seen_by(Kind)) != 0) [[unlikely]] {
    if (const child_way way = attend_fork(Kind); way != child_way::in_place) {
      return start_apart<Kind, R, std::decay_t<F>, std::decay_t<A>...>(
          way, std::forward<F>(fn), std::forward<A>(arguments)...);
    }
  }
  marked_frame<R, std::decay_t<F>, std::decay_t<A>...> frame(std::forward<F>(fn),
                                                             std::forward<A>(arguments)...);
  const std::uint64_t returned = frame.run_under(Kind);
  if (frame.events != 0) [[unlikely]]
    return future_after_events<Kind, R>(frame, returned);
  return future_in_place<R>(frame, returned);
}

}  // namespace sojourn::detail
