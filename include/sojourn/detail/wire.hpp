// SPDX-License-Identifier: Apache-2.0
// Active messages as the templates above them see them: room in the ring to a rank, filled in
// place and committed, and a table of handlers that a message names by index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sojourn/detail/activation.hpp"
#include "sojourn/detail/checked.hpp"
#include "sojourn/detail/result.hpp"
#include "sojourn/detail/ticket.hpp"
#include "sojourn/travels.hpp"

namespace sojourn::detail {

/// A request as its handler sees it. Valid until consume(): a handler that may block copies what
/// it needs first, so that a blocked handler never holds up the messages behind it.
struct request {
  const std::byte* payload;
  std::uint32_t bytes;
  int source;
  ticket_id ticket;  ///< Where the answer goes; 0 when none is wanted.

  /// Frees the message's room. Called once, by the handler.
  void consume();
};

using request_handler = void (*)(request& message);

/// Adds a handler; before main only, so that all ranks of one program have the same table.
/// `may_migrate`: what the handler calls may leave this rank with the frames of the handler.
std::uint16_t register_request_handler(request_handler handler, bool may_migrate);

/// Room for a request's payload, 16-byte aligned. No suspension between this and commit_request.
/// Suspends when there is no room or too many of this rank's requests to `to` are unanswered.
struct outgoing {
  std::byte* payload;
  ticket_id ticket;
};
outgoing begin_request(int to, std::size_t payload_bytes, bool answered);
void commit_request(int to, std::uint16_t handler, ticket_id ticket);

/// An exception left a call that nobody waits for: it goes to the surrounding finish, or ends the
/// job.
void one_way_failed(const std::exception_ptr& failure);

/// Throws sojourn::error: `address` is null or lies in no rank's heap.
[[noreturn]] void bad_access(std::uint64_t address, const char* method);

/// Index of a function in the program's own table of functions, which the linker built; and back,
/// bounds-checked. No address from the wire is ever called.
std::uint32_t function_index(void (*function)());
void (*function_at(std::uint32_t index))();

/// A callable without captures as it travels: nothing, or the index of a function.
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

/// Payload and handler of a call of `F` with arguments `A`, by value.
template <class F, class R, class... A>
struct callable_request {
  struct payload_type {
    travelling_callable<F> fn;
    std::tuple<A...> arguments;
  };

  static void handle(request& message) {
    room<payload_type> payload;
    std::memcpy(static_cast<void*>(&payload.value), message.payload, sizeof(payload_type));
    ticket_id answer = message.ticket;
    message.consume();
    run(payload.value, answer);
  }

  static void run(payload_type& payload, ticket_id answer) noexcept {
    if (answer != 0) {
      send_outcome<R>(answer, [&]() -> R {
        return std::apply(payload.fn.get(), std::move(payload.arguments));
      });
      return;
    }
    std::exception_ptr failure;
    try {
      std::apply(payload.fn.get(), std::move(payload.arguments));
      return;
    } catch (...) {
      failure = std::current_exception();
    }
    one_way_failed(failure);
  }

  inline static const std::uint16_t handler = register_request_handler(&handle, true);
};

/// Payload and handler of a call of `Method` on an object of the receiving rank. Its
/// frames hold `this`, so they stay.
template <auto Method, class T, class C, class R, class... A>
struct method_request {
  struct payload_type {
    T* object;
    std::tuple<A...> arguments;
  };

  static void handle(request& message) {
    room<payload_type> payload;
    std::memcpy(static_cast<void*>(&payload.value), message.payload, sizeof(payload_type));
    ticket_id answer = message.ticket;
    message.consume();
    std::conditional_t<std::is_const_v<T>, const C, C>* object = payload.value.object;
    send_outcome<R>(answer, [&]() -> R {
      return std::apply([&](A&... a) -> R { return (object->*Method)(std::move(a)...); },
                        payload.value.arguments);
    });
  }

  inline static const std::uint16_t handler = register_request_handler(&handle, false);
};

template <auto Method>
const char* method_name() {
  return __PRETTY_FUNCTION__;
}

/// The same in checked mode, where the owner looks at the object first, and tells who asked.
template <auto Method, class T, class C, class R, class... A>
struct checked_method_request {
  struct payload_type {
    code_site site;
    T* object;
    std::tuple<A...> arguments;
  };

  static void handle(request& message) {
    room<payload_type> payload;
    std::memcpy(static_cast<void*>(&payload.value), message.payload, sizeof(payload_type));
    ticket_id answer = message.ticket;
    message.consume();
    check_access(reinterpret_cast<std::uint64_t>(payload.value.object), kind_of_object<T>(),
                 method_name<Method>(), payload.value.site);
    std::conditional_t<std::is_const_v<T>, const C, C>* object = payload.value.object;
    send_outcome<R>(answer, [&]() -> R {
      return std::apply([&](A&... a) -> R { return (object->*Method)(std::move(a)...); },
                        payload.value.arguments);
    });
  }

  inline static const std::uint16_t handler = register_request_handler(&handle, false);
};

/// Sends a request whose payload is `payload`; returns the ticket of its answer, or 0.
template <class Request, class Payload>
ticket_id send_request(int to, Payload&& payload, bool answered) {
  using stored_payload = std::remove_cvref_t<Payload>;
  outgoing out = begin_request(to, sizeof(stored_payload), answered);
  if constexpr (alignof(stored_payload) <= 16) {
    ::new (static_cast<void*>(out.payload)) stored_payload(std::forward<Payload>(payload));
  } else {
    std::memcpy(out.payload, static_cast<const void*>(&payload), sizeof(stored_payload));
  }
  commit_request(to, Request::handler, out.ticket);
  return out.ticket;
}

}  // namespace sojourn::detail
