// SPDX-License-Identifier: Apache-2.0
// Calls without a reply, many in one message. A bundle holds runs: a run is a header and then the
// payloads of calls of one function, one after the other. The receiver goes through a run in one
// loop, in which the function is inlined. When a call blocks, it keeps the stack that it runs on,
// and the rest of the bundle runs on another stack (MRPC §3.4: threads are made lazily).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "sojourn/detail/request.hpp"

namespace sojourn::detail {

/// Goes through the rest of a run.
using bundled_handler = void (*)();

/// Describes a function, or a method, that is called from bundles. There is one for each such
/// function, made before main.
struct bundled_function {
  bundled_function(bundled_handler run, std::uint32_t stride, bool has_object);

  bundled_handler run;
  std::uint32_t stride;   ///< Bytes of a payload, a multiple of 8; 0: they differ.
  std::uint32_t handler;  ///< The number that names the function in messages.
  bool has_object;        ///< It is a method. All calls of a run are of one object.
};

/// Where a call can be added to the bundle to a rank without calling the runtime: while there is
/// room, and for the same function, object and finish scope as the last call.
struct open_run {
  std::byte* next = nullptr;  ///< Where the next payload goes.
  /// The last place where a payload may begin; where payloads differ in length, the end of the room
  /// for them.
  std::byte* last = nullptr;
  void* scope = nullptr;
  const bundled_function* called = nullptr;
  std::uint64_t object = 0;  ///< Whose method is called; 0 when it is a function.
};
/// One open_run for each rank; and how many, or 0 while calls without a reply are not bundled.
extern open_run* open_runs;
extern unsigned open_run_count;

/// The bundle that this rank is running; there is one at a time.
struct opened_bundle {
  const std::byte* next;     ///< The next payload of this run.
  const std::byte* run_end;  ///< Behind its last one.
  std::uint64_t object;      ///< Whose method this run calls.
  std::uint64_t reader;      ///< Changes when a call blocks and another stack takes over the rest.
};
extern opened_bundle opened;

/// Room for a payload of `bytes`, in a new run of `called`, of `object` if it has one, in the
/// bundle to rank `to`; 8-byte aligned, to be filled before anything else is done. Null when the
/// call cannot be bundled: if it is an error, the caller learns the reason by sending the call
/// alone. Suspends while there is no room to send a full bundle; in a handler, only when many such
/// bundles wait already. Requires: calls are bundled, and rank `to` exists.
std::byte* room_in_new_run(int to, const bundled_function& called, std::uint64_t object,
                           std::size_t bytes);
/// Sends calls of `called`, whose `count` payloads lie at `payloads`, in a message of their own,
/// behind what is bundled for that rank. Then gives other fibers a turn, except in a handler.
/// Returns false, and sends none of them, when they would have to wait, or are not to be bundled.
/// Requires: as room_in_new_run().
bool send_run_now(int to, const bundled_function& called, std::uint64_t object,
                  const std::byte* payloads, std::size_t count);
/// How many bytes of payloads are worth gathering for each rank, to be sent so.
std::size_t bytes_of_a_run();
/// A run of calls ends in the middle of one: ends the rank with a report.
[[noreturn]] void refuse_bundled_values();
/// Calls with longer payloads are sent alone.
inline constexpr std::size_t bundled_bytes_max = 512;

/// Has run_until_one_throws(opened.reader) go through the rest of a run, and hands on what is
/// thrown. Inlined always: a frame of the runtime's own above one of the program would keep the
/// program from answering questions about shared memory (frames/code_owner.hpp).
[[gnu::always_inline]] inline void run_calls(void (*run_until_one_throws)(std::uint64_t mine)) {
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

/// Puts calls into bundles, and runs them on the other side. `Callee` says what is called:
///
///   head         what each call has before its arguments
///   has_object   it is a method: the object stands once before all calls of a run
///   never_waits  each call promises that; name() is the compiler's name of it
///   run(object, payload)   calls it
///   handles_batches  it has run_batch(object, first, count), which calls it once for many payloads
template <class Callee, class... A>
class bundled_calls {
 public:
  using head = typename Callee::head;
  struct payload_type {
    [[no_unique_address]] head what;
    std::tuple<A...> arguments;

    using reading = no_reading;  // As request_of has them.
    std::tuple<A...>& get() { return arguments; }
  };
  static constexpr std::uint32_t stride = (sizeof(payload_type) + 7) / 8 * 8;
  static constexpr bool fits = stride <= bundled_bytes_max && alignof(payload_type) <= 8;

  /// False when the open run is of something else, or full.
  template <class... B>
  [[gnu::always_inline]] static bool add_to_open_run(int to, std::uint64_t object,
                                                     const typename Callee::head& what,
                                                     B&... arguments) {
    open_run& run = open_runs[to];
    check_thread();
    if (run.called != &called || run.next > run.last || run.scope != running_fiber->scope)
        [[unlikely]] {
      return false;
    }
    if constexpr (Callee::has_object) {
      if (run.object != object) [[unlikely]]
        return false;
    }
    std::byte* at = run.next;
    run.next = at + stride;
    ::new (static_cast<void*>(at)) payload_type{what, {std::move(arguments)...}};
    return true;
  }
  /// The same for many payloads: returns how many there was room for.
  static std::size_t copy_to_open_run(int to, std::uint64_t object, const std::byte* payloads,
                                      std::size_t count) {
    open_run& run = open_runs[to];
    check_thread();
    if (run.called != &called || run.next > run.last || run.scope != running_fiber->scope ||
        run.object != object) {
      return 0;
    }
    count = std::min(count, static_cast<std::size_t>(run.last - run.next) / stride + 1);
    std::memcpy(run.next, payloads, count * stride);
    run.next += count * stride;
    return count;
  }
  /// As send_run_now.
  static bool send_now(int to, std::uint64_t object, const std::byte* payloads, std::size_t count) {
    check_thread();
    return send_run_now(to, called, object, payloads, count);
  }
  /// False when the call has to be sent alone. Suspends: as room_in_new_run().
  template <class... B>
  static bool add(int to, std::uint64_t object, const typename Callee::head& what,
                  B&... arguments) {
    return add_to_open_run(to, object, what, arguments...) ||
           add_to_new_run(to, object, what, arguments...);
  }
  /// The same, when there is no room in the open run.
  template <class... B>
  static bool add_to_new_run(int to, std::uint64_t object, const typename Callee::head& what,
                             B&... arguments) {
    std::byte* at = room_in_new_run(to, called, object, stride);
    if (at == nullptr) return false;
    ::new (static_cast<void*>(at)) payload_type{what, {std::move(arguments)...}};
    return true;
  }

 private:
  static void run_all() { run_calls(&run_until_one_throws); }

  inline static const bundled_function called{&run_all, stride, Callee::has_object};

  // Stores are what costs time here: when one misses the caches, the stores after it must wait.
  static void run_until_one_throws(std::uint64_t mine) {
    if constexpr (Callee::handles_batches) {
      if (run_at_once()) [[likely]]
        return;
    }
    if constexpr (Callee::never_waits) {
      if (!checked()) [[likely]]
        return run_straight_until_one_throws();
    }
    struct promise {
      promise() {
        if constexpr (Callee::never_waits)
          begin_promise(promise_of_handler::nonblocking, Callee::name());
      }
      ~promise() {
        if constexpr (Callee::never_waits) end_promise();
      }
    };
    const std::byte* next = opened.next;
    const std::byte* const end = opened.run_end;
    const std::uint64_t object = opened.object;
    while (next != end) {
      room<payload_type> payload;
      std::memcpy(static_cast<void*>(&payload.value), next, sizeof(payload_type));
      // Before the call: if it blocks, whoever takes over begins after this payload.
      opened.next = next += stride;
      const promise lives;
      Callee::run(object, payload.value);
      if (opened.reader != mine) return;
    }
  }

  /// False when the calls have to be made one by one.
  static bool run_at_once() {
    static_assert(sizeof...(A) == 1 && alignof(payload_type) <= 8 &&
                  sizeof(payload_type) == (sizeof(A) + ...));
    const handler_promise lives(promise_of_handler::nonblocking, Callee::name());
    const std::byte* const first = opened.next;
    const auto count = static_cast<std::size_t>(opened.run_end - first) / stride;
    opened.next = opened.run_end;  // before the call, in case it throws
    if (count == 0 || Callee::run_batch(opened.object, first, count)) return true;
    opened.next = first;
    return false;
  }

  /// None of these calls waits. So nobody takes over, and the progress need not be known outside.
  static void run_straight_until_one_throws() {
    struct progress {
      const std::byte* next = opened.next;
      progress() { begin_promise(promise_of_handler::nonblocking, Callee::name()); }
      progress(const progress&) = delete;
      progress& operator=(const progress&) = delete;
      [[gnu::always_inline]] ~progress() {
        end_promise();
        opened.next = next;
      }
    } run;
    const std::byte* const end = opened.run_end;
    const std::uint64_t object = opened.object;
    while (run.next != end) {
      room<payload_type> payload;
      std::memcpy(static_cast<void*>(&payload.value), run.next, sizeof(payload_type));
      run.next += stride;
      Callee::run_straight(object, payload.value);
    }
  }
};

/// Of the elements of a view, which are used where they lie in the message.
template <class T>
inline constexpr std::size_t alignment_in_place = 1;
template <class T>
inline constexpr std::size_t alignment_in_place<view<T>> = alignof(T);

/// The same for arguments that are marshalled: each call has a length of its own.
template <class Callee, class... A>
class bundled_values {
 public:
  using head = typename Callee::head;
  static constexpr bool fits = true;  // unless it turns out to be too long

  /// False when the call has to be sent alone: it is too long, say. Suspends: as
  /// room_in_new_run(). Errors: what `save` throws; then the call is not made.
  static bool add(int to, std::uint64_t object, const head& what, A&... arguments) {
    if (!can_lie_in_a_bundle || marshals_apart) return false;
    const stays_here stays;
    const std::size_t length = measure(arguments...).whole;
    if (length > bundled_bytes_max) return false;
    const std::size_t bytes = before_values + (length + 7) / 8 * 8;
    std::byte* at = room_in_open_run(to, object, bytes);
    if (at == nullptr) at = room_in_new_run(to, called, object, bytes);
    if (at == nullptr) return false;
    const call_header header{static_cast<std::uint32_t>(length), what};
    std::memcpy(at, &header, sizeof header);
    {
      const nonblocking<> promise;
      writer values(at + before_values, length);
      (save_value(values, arguments), ...);
      if (values.left() != 0) cannot_be_saved("its `save` writes less the second time");
    }
    open_runs[to].next = at + bytes;
    ++counts.calls_bundled;
    counts.marshalled_bytes += length;
    counts.marshal_copies += length;
    return true;
  }

 private:
  struct call_header {
    std::uint32_t length;  ///< Of the values.
    [[no_unique_address]] head what;
  };
  static_assert(alignof(call_header) <= 8);
  static constexpr std::size_t before_values = (sizeof(call_header) + 7) / 8 * 8;
  static constexpr bool has_views = (is_a<A, view> || ...);
  /// Payloads lie at multiples of 8.
  static constexpr bool can_lie_in_a_bundle = ((alignment_in_place<A> <= 8) && ...);

  struct payload_type {
    [[no_unique_address]] head what;
    std::tuple<A...> arguments;

    using reading = no_reading;
    std::tuple<A...>& get() { return arguments; }
  };

  static std::byte* room_in_open_run(int to, std::uint64_t object, std::size_t bytes) {
    const open_run& run = open_runs[to];
    check_thread();
    const bool is_same = run.called == &called && run.scope == running_fiber->scope &&
                         (!Callee::has_object || run.object == object);
    return is_same && bytes <= static_cast<std::size_t>(run.last - run.next) ? run.next : nullptr;
  }

  static void run_all() { run_calls(&run_until_one_throws); }
  inline static const bundled_function called{&run_all, 0, Callee::has_object};

  static void run_until_one_throws(std::uint64_t mine) {
    const std::byte* next = opened.next;
    const std::byte* const end = opened.run_end;
    const std::uint64_t object = opened.object;
    while (next != end) {
      room<call_header> header;
      const auto left = static_cast<std::size_t>(end - next);
      if (left < before_values) refuse_bundled_values();
      std::memcpy(static_cast<void*>(&header.value), next, sizeof(call_header));
      const std::size_t length = header.value.length;
      const std::size_t padded = (length + 7) / 8 * 8;
      if (padded > left - before_values) refuse_bundled_values();
      const std::byte* const values = next + before_values;
      opened.next = next += before_values + padded;
      ++counts.handlers_run;
      payload_type payload{header.value.what, read(values, length)};
      run(object, payload);
      if (opened.reader != mine) return;
    }
  }
  static std::tuple<A...> read(const std::byte* values, std::size_t length) {
    const nonblocking<> promise;
    reader from(values, length, nullptr);
    std::tuple<A...> arguments = make_value<std::tuple<A...>>(from);
    from.expect_end();
    counts.marshal_copies += from.copied();
    return arguments;
  }
  static void run(std::uint64_t object, payload_type& payload) {
    if constexpr (has_views || Callee::never_waits) {
      struct promise {
        nonblocking<> in_checked_mode;
        promise() {
          begin_promise(has_views ? promise_of_handler::view : promise_of_handler::nonblocking,
                        Callee::name());
        }
        ~promise() { end_promise(); }
      } const lives;
      Callee::run(object, payload);
    } else {
      Callee::run(object, payload);
    }
  }
};

template <class F>
struct bundled_function_callee {
  using head = travelling_callable<F>;
  static constexpr bool has_object = false;
  static constexpr bool handles_batches = false;
  static constexpr bool never_waits = is_nonblocking<F>;
  static const char* name() { return callable_name<F>(); }

  template <class Payload>
  [[gnu::always_inline]] static void run(std::uint64_t, Payload& payload) {
    std::apply(payload.what.get(), std::move(payload.arguments));
  }
  template <class Payload>
  [[gnu::always_inline]] static void run_straight(std::uint64_t, Payload& payload) {
    std::apply(payload.what.get().fn, std::move(payload.arguments));
  }
};

/// request_of (request.hpp) for calls of functions in bundles.
template <class F, class R, class... A>
struct bundled_call {
  using alone = request_of<function_target<F, R>, A...>;
  using calls = bundled_calls<bundled_function_callee<F>, A...>;
  static constexpr bool fits = calls::fits;

  /// Requires: calls to `to` are bundled (open_run_count).
  template <class... B>
  [[gnu::always_inline]] static void send(int to, F fn, B&... arguments) {
    const travelling_callable<F> callable(fn);
    if (!calls::add_to_open_run(to, 0, callable, arguments...)) [[unlikely]]
      add_to_new_run_or_send(to, callable, B(std::move(arguments))...);
  }
  /// The same, but false when the call has to be sent alone.
  template <class... B>
  static bool add(int to, F fn, B&... arguments) {
    return calls::add(to, 0, travelling_callable<F>(fn), arguments...);
  }

 private:
  // Arguments by value, so that a caller can keep its variables in registers.
  template <class... B>
  [[gnu::noinline]] static void add_to_new_run_or_send(int to, travelling_callable<F> callable,
                                                       B... arguments) {
    if (calls::add_to_new_run(to, 0, callable, arguments...)) return;
    ++counts.calls_not_bundled;
    (void)alone::send(request_way{to, false}, callable, arguments...);
  }
};

/// A method: `Target` is its method_target.
template <class Target, bool Checked>
struct bundled_method_callee {
  struct no_site {};
  using head = std::conditional_t<Checked, code_site, no_site>;
  static constexpr bool has_object = true;
  /// In checked mode each call has to be checked.
  static constexpr bool handles_batches = Target::handles_batches && !Checked;
  /// Also one that promises not to wait may have to, where its object has moved.
  static constexpr bool never_waits = false;
  static const char* name() { return Target::name(); }

  template <class Payload>
  [[gnu::always_inline]] static void run(std::uint64_t object, Payload& payload) {
    typename Target::head to{};
    to.object = reinterpret_cast<void*>(object);
    if constexpr (Checked) to.site = payload.what;
    Target::run(to, 0, payload);
  }
  static bool run_batch(std::uint64_t object, const std::byte* first, std::size_t count) {
    return Target::run_batch(object, first, count);
  }
};

}  // namespace sojourn::detail
