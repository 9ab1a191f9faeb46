// SPDX-License-Identifier: Apache-2.0
// Calls without a reply, many to a message. A bundle holds runs: one header, then the payloads of
// calls of one function, one behind the other. The receiver goes through a run in one loop, in
// which the function is inlined; when a call blocks, it keeps the stack that it runs on, and the
// rest of the bundle is gone through on another (MRPC §3.4: threads are made lazily).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "sojourn/detail/wire.hpp"

namespace sojourn::detail {

/// What the bundle to a rank takes without a call of the runtime: payloads of the function that the
/// last ones were of, made in the same finish scope, as long as there is room.
struct open_run {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::byte* next = nullptr;  ///< Where the next one goes.
  std::byte* end = nullptr;   ///< Of the room.
  void* scope = nullptr;
  std::uint32_t handler = none;
};
/// One for each rank while calls without a reply are bundled; null while they are not.
extern open_run* open_runs;

/// The bundle that this rank goes through; there is one at a time.
struct opened_bundle {
  const std::byte* next;     ///< The next payload of this run.
  const std::byte* run_end;  ///< Behind its last one.
  std::uint64_t reader;      ///< Changes when a call blocks and others take over what is left.
};
extern opened_bundle opened;

/// Goes through the rest of a run.
using bundled_handler = void (*)();

/// Adds one; before main only. `stride`: bytes of a payload, a multiple of 8.
std::uint16_t register_bundled_handler(bundled_handler handler, std::uint32_t stride);

/// What room_in_bundle does when the open run does not take it, or there is no such rank.
std::byte* room_in_new_run(int to, std::uint16_t handler, std::uint32_t stride);
/// Room for a payload in the bundle to rank `to`, 8-byte aligned, to be filled before anything
/// else is done; null when this call cannot be bundled, which the call itself then explains.
/// Suspends when a full bundle finds no room. Requires: calls are bundled.
[[gnu::always_inline]] inline std::byte* room_in_bundle(int to, std::uint16_t handler,
                                                        std::uint32_t stride) {
  if (static_cast<unsigned>(to) < static_cast<unsigned>(job.count)) [[likely]] {
    open_run& run = open_runs[to];
    if (run.handler == handler && static_cast<std::size_t>(run.end - run.next) >= stride &&
        run.scope == running_fiber->scope) [[likely]] {
      std::byte* at = run.next;
      run.next += stride;
      return at;
    }
  }
  return room_in_new_run(to, handler, stride);
}
/// Longer payloads go alone.
inline constexpr std::size_t bundled_bytes_max = 512;

/// As callable_request.
template <class F, class R, class... A>
struct bundled_call {
  using payload_type = typename callable_request<F, R, A...>::payload_type;
  static constexpr std::uint32_t stride = (sizeof(payload_type) + 7) / 8 * 8;
  static constexpr bool fits = stride <= bundled_bytes_max && alignof(payload_type) <= 8;

  static void run_all() {
    const std::uint64_t mine = opened.reader;
    for (;;) {
      std::exception_ptr failure;
      try {
        run_until_one_throws(mine);
        return;
      } catch (...) {
        failure = std::current_exception();
      }
      one_way_failed(failure);
      if (opened.reader != mine) return;
    }
  }

  /// False when it has to go alone.
  template <class... B>
  static bool add(int to, F fn, B&... arguments) {
    travelling_callable<F> callable(fn);
    std::byte* at = room_in_bundle(to, handler, stride);
    if (at == nullptr) return false;
    ::new (static_cast<void*>(at)) payload_type{callable, {std::move(arguments)...}};
    return true;
  }

  inline static const std::uint16_t handler = register_bundled_handler(&run_all, stride);

 private:
  // What costs in it is stores: those behind one that misses the caches wait for it.
  static void run_until_one_throws(std::uint64_t mine) {
    if constexpr (is_nonblocking<F>) {
      if (!checked()) [[likely]]
        return run_straight_until_one_throws();
    }
    const std::byte* next = opened.next;
    const std::byte* const end = opened.run_end;
    while (next != end) {
      room<payload_type> payload;
      std::memcpy(static_cast<void*>(&payload.value), next, sizeof(payload_type));
      // Before the call: whoever takes over begins behind it.
      opened.next = next += stride;
      std::apply(payload.value.fn.get(), std::move(payload.value.arguments));
      if (opened.reader != mine) return;
    }
  }

  /// None waits, so nobody takes over, and where the run is need not be known outside.
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
      std::apply(payload.value.fn.get().fn, std::move(payload.value.arguments));
    }
  }
};

}  // namespace sojourn::detail
