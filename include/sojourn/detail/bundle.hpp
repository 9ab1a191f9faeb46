// SPDX-License-Identifier: Apache-2.0
// Calls without a reply, many in one message. A bundle holds runs: a run is a header and then the
// payloads of calls of one function, one after the other. The receiver goes through a run in one
// loop, in which the function is inlined. When a call blocks, it keeps the stack that it runs on,
// and the rest of the bundle runs on another stack (MRPC §3.4: threads are made lazily).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "sojourn/detail/request.hpp"

namespace sojourn::detail {

/// Goes through the rest of a run.
using bundled_handler = void (*)();

/// Describes a function that is called from bundles. There is one for each such function, made
/// before main.
struct bundled_function {
  bundled_function(bundled_handler run, std::uint32_t stride);

  bundled_handler run;
  std::uint32_t stride;   ///< Bytes of a payload, a multiple of 8.
  std::uint32_t handler;  ///< The number that names the function in messages.
};

/// Where a call can be added to the bundle to a rank without calling the runtime: while there is
/// room, and for the same function and finish scope as the last call.
struct open_run {
  std::byte* next = nullptr;  ///< Where the next payload goes.
  std::byte* last = nullptr;  ///< The last place where a payload may begin.
  void* scope = nullptr;
  const bundled_function* called = nullptr;
};
/// One open_run for each rank; and how many, or 0 while calls without a reply are not bundled.
extern open_run* open_runs;
extern unsigned open_run_count;

/// The bundle that this rank is running; there is one at a time.
struct opened_bundle {
  const std::byte* next;     ///< The next payload of this run.
  const std::byte* run_end;  ///< Behind its last one.
  std::uint64_t reader;      ///< Changes when a call blocks and another stack takes over the rest.
};
extern opened_bundle opened;

/// Room, in a new run, for a payload of `called` in the bundle to rank `to`; 8-byte aligned, to be
/// filled before anything else is done. Null when the call cannot be bundled: if it is an error,
/// the caller learns the reason by sending the call alone. Suspends while there is no room to send
/// a full bundle. Requires: calls are bundled, and rank `to` exists.
std::byte* room_in_new_run(int to, const bundled_function& called);
/// Calls with longer payloads are sent alone.
inline constexpr std::size_t bundled_bytes_max = 512;

/// request_of (request.hpp) for calls in bundles.
template <class F, class R, class... A>
struct bundled_call {
  using alone = request_of<function_target<F, R>, A...>;
  using payload_type = typename alone::payload_type;
  static constexpr std::uint32_t stride = (sizeof(payload_type) + 7) / 8 * 8;
  static constexpr bool fits = stride <= bundled_bytes_max && alignof(payload_type) <= 8;

  static void run_all() {
    const std::uint64_t mine = opened.reader;
    for (;;) {
      std::exception_ptr failure;
      try {
        run_until_one_throws(mine);
        return;
      } catch (const thrown_past&) {
        failure = caught_past();
      } catch (...) {
        failure = caught_past();
      }
      one_way_failed(failure);
      if (opened.reader != mine) return;
    }
  }

  /// Requires: calls to `to` are bundled (open_run_count).
  template <class... B>
  [[gnu::always_inline]] static void send(int to, F fn, B&... arguments) {
    const travelling_callable<F> callable(fn);
    if (!add_to_open_run(to, callable, arguments...)) [[unlikely]]
      add_to_new_run_or_send(to, callable, B(std::move(arguments))...);
  }
  /// The same, but false when the call has to be sent alone.
  template <class... B>
  static bool add(int to, F fn, B&... arguments) {
    const travelling_callable<F> callable(fn);
    return add_to_open_run(to, callable, arguments...) ||
           add_to_new_run(to, callable, arguments...);
  }

 private:
  template <class... B>
  [[gnu::always_inline]] static bool add_to_open_run(int to, const travelling_callable<F>& callable,
                                                     B&... arguments) {
    open_run& run = open_runs[to];
    check_thread();
    if (run.called != &called || run.next > run.last || run.scope != running_fiber->scope)
        [[unlikely]] {
      return false;
    }
    std::byte* at = run.next;
    run.next = at + stride;
    ::new (static_cast<void*>(at)) payload_type{callable, {std::move(arguments)...}};
    return true;
  }
  template <class... B>
  static bool add_to_new_run(int to, const travelling_callable<F>& callable, B&... arguments) {
    std::byte* at = room_in_new_run(to, called);
    if (at == nullptr) return false;
    ::new (static_cast<void*>(at)) payload_type{callable, {std::move(arguments)...}};
    return true;
  }
  // Arguments by value, so that a caller can keep its variables in registers.
  template <class... B>
  [[gnu::noinline]] static void add_to_new_run_or_send(int to, travelling_callable<F> callable,
                                                       B... arguments) {
    if (add_to_new_run(to, callable, arguments...)) return;
    (void)alone::send(request_way{to, false}, callable, arguments...);
  }

  inline static const bundled_function called{&run_all, stride};

  // Stores are what costs time here: when one misses the caches, the stores after it must wait.
  static void run_until_one_throws(std::uint64_t mine) {
    if constexpr (is_nonblocking<F>) {
      if (!checked()) [[likely]]
        return run_straight_until_one_throws();
    }
    struct promise {
      promise() {
        if constexpr (is_nonblocking<F>)
          begin_promise(promise_of_handler::nonblocking, callable_name<F>());
      }
      ~promise() {
        if constexpr (is_nonblocking<F>) end_promise();
      }
    };
    const std::byte* next = opened.next;
    const std::byte* const end = opened.run_end;
    while (next != end) {
      room<payload_type> payload;
      std::memcpy(static_cast<void*>(&payload.value), next, sizeof(payload_type));
      // Before the call: if it blocks, whoever takes over begins after this payload.
      opened.next = next += stride;
      const promise lives;
      std::apply(payload.value.what.get(), std::move(payload.value.arguments));
      if (opened.reader != mine) return;
    }
  }

  /// None of these calls waits. So nobody takes over, and the progress need not be known outside.
  static void run_straight_until_one_throws() {
    struct progress {
      const std::byte* next = opened.next;
      progress() { begin_promise(promise_of_handler::nonblocking, callable_name<F>()); }
      progress(const progress&) = delete;
      progress& operator=(const progress&) = delete;
      [[gnu::always_inline]] ~progress() {
        end_promise();
        opened.next = next;
      }
    } run;
    const std::byte* const end = opened.run_end;
    while (run.next != end) {
      room<payload_type> payload;
      std::memcpy(static_cast<void*>(&payload.value), run.next, sizeof(payload_type));
      run.next += stride;
      std::apply(payload.value.what.get().fn, std::move(payload.value.arguments));
    }
  }
};

}  // namespace sojourn::detail
