// SPDX-License-Identifier: Apache-2.0
// Active messages as the templates see them: room in the ring to a rank, which is filled in place
// and committed; and a table of handlers, which messages name by index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/detail/activation.hpp"
#include "sojourn/detail/addresses.hpp"
#include "sojourn/detail/checked.hpp"
#include "sojourn/detail/leaving.hpp"
#include "sojourn/detail/marshalled.hpp"
#include "sojourn/detail/owner.hpp"
#include "sojourn/detail/result.hpp"
#include "sojourn/detail/thrown.hpp"
#include "sojourn/detail/ticket.hpp"
#include "sojourn/monitor.hpp"
#include "sojourn/nonblocking.hpp"
#include "sojourn/travels.hpp"

namespace sojourn::detail {

struct arrival;

/// A request as its handler sees it. Valid until consume(): a handler that may block copies what
/// it needs first, so that a blocked handler never holds up the messages behind it.
struct request {
  const std::byte* payload;
  std::uint32_t bytes;
  int source;
  ticket_id ticket;               ///< Where the answer goes; 0 when none is wanted.
  const arrival* from = nullptr;  ///< What arrived. Valid until the handler suspends.

  /// Frees the message's room. Called once, by the handler, before it suspends.
  void consume();
};

using request_handler = void (*)(request& message);

/// Adds a handler; only before main, so that all ranks of one program have the same table.
/// `may_migrate`: what the handler calls may leave this rank, together with the handler's frames.
/// `promises`: the compiler's name for what the handler calls, if that never waits; the handler
/// then runs on the dispatcher's stack. `keeps`: if not 0, the handler's messages have at least so
/// many bytes, may be kept for later, and may meanwhile be handed to other ranks (balance.hpp).
std::uint16_t register_request_handler(request_handler handler, bool may_migrate,
                                       const char* promises = nullptr, std::size_t keeps = 0);

template <class... A>
[[gnu::always_inline]] inline void check_arguments([[maybe_unused]] int to, const A&... arguments) {
  (check_leaving(leaves_as::argument, to, &arguments), ...);
}

/// Room for a request's payload, 16-byte aligned. No suspension between this and commit_request.
/// Suspends when there is no room or too many of this rank's requests to `to` are unanswered.
struct outgoing {
  std::byte* payload;
  ticket_id ticket;
};
outgoing begin_request(int to, std::size_t payload_bytes, bool answered);
void commit_request(int to, std::uint16_t handler, ticket_id ticket);

/// Called when an exception has left a call that nobody waits for: the exception goes to the
/// surrounding finish, or ends the job.
void one_way_failed(const std::exception_ptr& failure);

/// Refuses a message that is shorter than what it must hold: tells both ends. Consumes the message.
void refuse_request(request& message, std::size_t needed);
/// Refuses a call of an object that is not in this rank's heap.
[[noreturn]] void refuse_object(std::uint64_t address);
template <class T>
[[gnu::always_inline]] inline T* object_here(T* object) {
  auto address = reinterpret_cast<std::uint64_t>(object);
  if (!is_here(address)) [[unlikely]]
    refuse_object(address);
  return object;
}

/// Why a handler must not wait.
enum class promise_of_handler : std::uint8_t {
  view,        ///< It reads its arguments in a message that it has not consumed.
  nonblocking  ///< It has no stack of its own, or is one of a run of calls.
};
/// Called before and after such a handler. `called`: the compiler's name for what it calls.
void begin_promise(promise_of_handler what, const char* called);
void end_promise();

/// The index of a function in the table of functions that the linker built; and the function of an
/// index, which is checked against the table's bounds. No address from a message is ever called.
std::uint32_t function_index(void (*function)());
void (*function_at(std::uint32_t index))();

/// A callable without captures in the form in which it travels: nothing, or the index of a
/// function.
template <class F, bool IsPointer = is_function_pointer<F>>
struct travelling_callable {
  explicit travelling_callable(F) {}
  F get() const {
    static_assert(std::is_empty_v<F>);
    alignas(F) unsigned char storage[sizeof(F)] = {};
    return *reinterpret_cast<F*>(storage);
  }
};
template <class F>
struct travelling_callable<F, true> {
  explicit travelling_callable(F fn) : index(function_index(reinterpret_cast<void (*)()>(fn))) {}
  F get() const { return reinterpret_cast<F>(function_at(index)); }
  std::uint32_t index;
};
template <class F>
struct travelling_callable<nonblocking<F>, false> : travelling_callable<F> {
  explicit travelling_callable(const nonblocking<F>& fn) : travelling_callable<F>(fn.fn) {}
  nonblocking<F> get() const { return nonblocking<F>(travelling_callable<F>::get()); }
};

/// Runs `call` and sends its outcome; when nobody waits for it, only an exception is handed on.
template <class R, class Call>
void run_call(ticket_id answer, Call&& call) noexcept {
  if (answer != 0) {
    send_outcome<R>(answer, call);
    return;
  }
  std::exception_ptr failure;
  try {
    call();
    return;
  } catch (const thrown_past&) {
    failure = caught_past();
  } catch (...) {
    failure = caught_past();
  }
  one_way_failed(failure);
}

template <class F>
const char* callable_name() {
  return __PRETTY_FUNCTION__;
}

/// Payload and handler of a call of `F` with arguments `A`, by value.
template <class F, class R, class... A>
struct callable_request {
  struct payload_type {
    [[no_unique_address]] travelling_callable<F> fn;
    std::tuple<A...> arguments;
  };

  static void handle(request& message) {
    room<payload_type> payload;
    if (message.bytes < sizeof(payload_type)) [[unlikely]]
      return refuse_request(message, sizeof(payload_type));
    std::memcpy(static_cast<void*>(&payload.value), message.payload, sizeof(payload_type));
    ticket_id answer = message.ticket;
    message.consume();
    run_call<R>(answer, [&]() -> R {
      return std::apply(payload.value.fn.get(), std::move(payload.value.arguments));
    });
  }

  inline static const std::uint16_t handler =
      register_request_handler(&handle, true, is_nonblocking<F> ? callable_name<F>() : nullptr);
};

/// Calls `Method` on an object of this rank; C is the class that declares it.
template <auto Method, class T, class C, class R, class... A>
[[gnu::always_inline]] inline R call_method(T* object, std::tuple<A...>& arguments) {
  std::conditional_t<std::is_const_v<T>, const C, C>* as_declared = object;
  return in_turn(*object, [&]() -> R {
    [[maybe_unused]] const promise_if<nonblocking_method<Method>> promise;
    return std::apply([&](A&... a) -> R { return (as_declared->*Method)(std::move(a)...); },
                      arguments);
  });
}

template <auto Method>
const char* method_name() {
  return __PRETTY_FUNCTION__;
}
/// A call may have to wait for its turn (monitor), whatever the method promises.
template <auto Method, class T>
inline constexpr bool promises_not_to_wait =
    nonblocking_method<Method> && !std::is_base_of_v<monitor, T>;
/// The `promises` of a method's handler.
template <auto Method, class T>
const char* promise_of_method() {
  return promises_not_to_wait<Method, T> ? method_name<Method>() : nullptr;
}

/// Payload and handler of a call of `Method` on an object of the receiving rank. The handler's
/// frames hold `this`, so they stay.
template <auto Method, class T, class C, class R, class... A>
struct method_request {
  struct payload_type {
    T* object;
    std::tuple<A...> arguments;
  };

  static void handle(request& message) {
    room<payload_type> payload;
    if (message.bytes < sizeof(payload_type)) [[unlikely]]
      return refuse_request(message, sizeof(payload_type));
    std::memcpy(static_cast<void*>(&payload.value), message.payload, sizeof(payload_type));
    ticket_id answer = message.ticket;
    message.consume();
    send_outcome<R>(answer, [&]() -> R {
      return call_method<Method, T, C, R>(object_here(payload.value.object),
                                          payload.value.arguments);
    });
  }

  inline static const std::uint16_t handler =
      register_request_handler(&handle, false, promise_of_method<Method, T>());
};

/// The same in checked mode: the owner checks the object first, and can tell who asked.
template <auto Method, class T, class C, class R, class... A>
struct checked_method_request {
  struct payload_type {
    code_site site;
    T* object;
    std::tuple<A...> arguments;
  };

  static void handle(request& message) {
    room<payload_type> payload;
    if (message.bytes < sizeof(payload_type)) [[unlikely]]
      return refuse_request(message, sizeof(payload_type));
    std::memcpy(static_cast<void*>(&payload.value), message.payload, sizeof(payload_type));
    ticket_id answer = message.ticket;
    message.consume();
    check_access(reinterpret_cast<std::uint64_t>(payload.value.object), kind_of_object<T>(),
                 method_name<Method>(), payload.value.site);
    send_outcome<R>(answer, [&]() -> R {
      return call_method<Method, T, C, R>(payload.value.object, payload.value.arguments);
    });
  }

  inline static const std::uint16_t handler =
      register_request_handler(&handle, false, promise_of_method<Method, T>());
};

// ---- Requests whose arguments are marshalled ----------------------------------------------------

/// True when arguments are read in the message itself: the function then promises not to wait.
template <class... A>
inline constexpr bool reads_in_place = (is_a<A, view> || ...);

/// While such an object lives, arguments are read in a message. Its end frees the message, before
/// the answer is sent: the answer tells the caller how far its messages have been read, and the
/// caller can then use the same lines of the ring again.
class message_reading {
 public:
  message_reading(request& message, const char* called) : message_(message) {
    begin_promise(promise_of_handler::view, called);
  }
  message_reading(const message_reading&) = delete;
  message_reading& operator=(const message_reading&) = delete;
  ~message_reading() {
    end_promise();
    message_.consume();
  }

 private:
  nonblocking<> promise_;  // so that checked mode also reports a wait that needs no switch
  request& message_;
};

/// The message holds `Head` as bytes, and then the marshalled arguments. The handlers' frames hold
/// what the arguments own, so they stay.
template <class Head, class... A>
struct marshalled_request {
  static constexpr std::size_t head_room =
      std::is_empty_v<Head> ? 0 : (sizeof(Head) + 15) / 16 * 16;
  using values = incoming_values<A...>;

  /// Calls run(head, values, answer, reads). What reads() returns must live exactly as long as the
  /// arguments are used.
  template <class Run>
  static void handle(request& message, [[maybe_unused]] const char* called, Run run) {
    room<Head> head;
    if (message.bytes < head_room + header_room) [[unlikely]]
      return refuse_request(message, head_room + header_room);
    std::memcpy(static_cast<void*>(&head.value), message.payload,
                head_room == 0 ? 0 : sizeof(Head));
    constexpr bool in_place = reads_in_place<A...>;
    ticket_id answer = message.ticket;
    values in(message.payload + head_room, message.bytes - head_room, message.source,
              in_place ? nullptr : &buffers);
    if (in.abandoned()) [[unlikely]] {
      message.consume();
      if (answer != 0) send_result(answer, nullptr, 0);
      return;
    }
    if constexpr (in_place) {
      if (in.is_whole())
        return run(head.value, in, answer, [&] { return message_reading(message, called); });
    }
    message.consume();
    run(head.value, in, answer, [] { return true; });
  }

  inline static receive_buffers buffers;
};

template <class F, class R, class... A>
struct marshalled_call : marshalled_request<travelling_callable<F>, A...> {
  using head = travelling_callable<F>;
  using base = marshalled_request<head, A...>;

  static void handle(request& message) {
    base::handle(message, callable_name<F>(),
                 [](head& fn, typename base::values& in, ticket_id answer, auto reads) {
                   run_call<R>(answer, [&]() -> R {
                     [[maybe_unused]] auto reading = reads();
                     return std::apply(fn.get(), std::move(in.get()));
                   });
                 });
  }

  static constexpr bool never_waits = is_nonblocking<F>;
  inline static const std::uint16_t handler =
      register_request_handler(&handle, false, never_waits ? callable_name<F>() : nullptr);
  inline static const std::uint16_t handler_that_waits = register_request_handler(&handle, false);
};

/// `Checked`: as checked_method_request.
template <bool Checked>
struct method_head {
  void* object;
};
template <>
struct method_head<true> {
  void* object;
  code_site site;
};

template <bool Checked, auto Method, class T, class C, class R, class... A>
struct marshalled_method : marshalled_request<method_head<Checked>, A...> {
  using head = method_head<Checked>;
  using base = marshalled_request<head, A...>;

  static void handle(request& message) {
    base::handle(message, method_name<Method>(),
                 [](head& to, typename base::values& in, ticket_id answer, auto reads) {
                   send_outcome<R>(answer, [&]() -> R {
                     [[maybe_unused]] auto reading = reads();
                     T* object = static_cast<T*>(to.object);
                     if constexpr (Checked) {
                       check_access(reinterpret_cast<std::uint64_t>(object), kind_of_object<T>(),
                                    method_name<Method>(), to.site);
                     } else {
                       object_here(object);
                     }
                     return call_method<Method, T, C, R>(object, in.get());
                   });
                 });
  }

  static constexpr bool never_waits = promises_not_to_wait<Method, T>;
  inline static const std::uint16_t handler =
      register_request_handler(&handle, false, promise_of_method<Method, T>());
  inline static const std::uint16_t handler_that_waits = register_request_handler(&handle, false);
};

/// The handler of a request. A function that never waits has a handler that never waits, except
/// when the sender kept long values back (`is_kept`): the receiver then may have to ask for them in
/// messages, because the system does not let it read the sender's memory.
template <class Request>
std::uint16_t handler_for([[maybe_unused]] bool is_kept) {
  if constexpr (Request::never_waits) {
    if (is_kept) return Request::handler_that_waits;
  }
  return Request::handler;
}

/// Sends values in a message. begin(bytes) returns room for the message, the first `head_room`
/// bytes of which the caller fills; commit(out, is_kept) sends the message.
template <class Begin, class Commit, class... A>
ticket_id send_marshalled(std::size_t head_room, Begin begin, Commit commit, A&... arguments) {
  stays_here stays;
  measured size = measure(arguments...);
  if (size.is_long(whole_request_max)) [[unlikely]] {
    wait_for_room_to_keep(size.whole);
    message_of_kept_values kept(size, std::move(arguments)...);
    outgoing out = begin(head_room + kept.bytes());
    kept.write(out.payload + head_room);
    commit(out, true);
    return out.ticket;
  }
  if (marshals_apart) [[unlikely]] {
    const written_apart apart(size.whole, arguments...);
    outgoing out = begin(head_room + apart.bytes());
    apart.write(out.payload + head_room);
    commit(out, false);
    return out.ticket;
  }
  outgoing out = begin(head_room + header_room + size.whole);
  std::exception_ptr failure = write_whole(out.payload + head_room, size.whole, arguments...);
  commit(out, false);
  if (failure != nullptr) [[unlikely]] {
    if (out.ticket != 0) ticket_drop(out.ticket);
    std::rethrow_exception(failure);
  }
  return out.ticket;
}

/// Sends a request whose arguments are marshalled. If it is not `answered`, `ticket_of` gives the
/// ticket for it.
template <class Request, class TicketOf, class... A>
ticket_id send_marshalled_request(int to, const typename Request::head& head, bool answered,
                                  TicketOf ticket_of, A&... arguments) {
  return send_marshalled(
      Request::head_room,
      [&](std::size_t bytes) {
        outgoing out = begin_request(to, bytes, answered);
        if (!answered) out.ticket = ticket_of();
        if constexpr (Request::head_room != 0) std::memcpy(out.payload, &head, sizeof head);
        return out;
      },
      [&](const outgoing& out, bool is_kept) {
        commit_request(to, handler_for<Request>(is_kept), out.ticket);
      },
      arguments...);
}
template <class Request, class... A>
ticket_id send_marshalled_tuple(int to, const typename Request::head& head, bool answered,
                                std::tuple<A...>& arguments) {
  return std::apply(
      [&](A&... a) {
        return send_marshalled_request<Request>(
            to, head, answered, [] { return ticket_id{0}; }, a...);
      },
      arguments);
}

/// Sends a request. build(room) makes its payload, a `Payload`, in the message itself. Returns the
/// ticket of the answer, or 0.
template <class Request, class Payload, class Build>
ticket_id send_request(int to, bool answered, Build&& build) {
  outgoing out = begin_request(to, sizeof(Payload), answered);
  if constexpr (alignof(Payload) <= 16) {
    build(static_cast<void*>(out.payload));
  } else {
    room<Payload> aligned;
    build(static_cast<void*>(&aligned.value));
    std::memcpy(out.payload, static_cast<const void*>(&aligned.value), sizeof(Payload));
  }
  commit_request(to, Request::handler, out.ticket);
  return out.ticket;
}

}  // namespace sojourn::detail
