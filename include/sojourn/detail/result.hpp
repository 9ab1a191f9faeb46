// SPDX-License-Identifier: Apache-2.0
// How a ticket holds a result of type T: as bytes if T travels; else marshalled if that is
// possible; else as the number of a value that this rank keeps, which is taken here. Templates over
// ticket.hpp; everything that does work is compiled in src/rpc.
#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "sojourn/calls/travels.hpp"
#include "sojourn/detail/leaving.hpp"
#include "sojourn/detail/marshalled.hpp"
#include "sojourn/detail/thrown.hpp"
#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

struct nothing {};
/// What is stored for a result of type R.
template <class R>
using stored = std::conditional_t<std::is_void_v<R>, nothing, R>;

/// Raw room for a T that may not be default-constructible, destroyed by whoever filled it.
template <class T>
union room {
  room() {}
  ~room() {}
  T value;
};
template <>
union room<nothing> {
  room() {}
  nothing value;
};

/// What a call on another rank may return.
template <class R>
inline constexpr bool is_result = marshals_to_stay<R>;

template <class R>
void send_value(ticket_id id, stored<R>&& value) {
  if constexpr (std::is_void_v<R>) {
    send_result(id, nullptr, 0);
  } else if constexpr (travels<R>) {
    check_leaving(leaves_as::result, home_of(id), &value);
    send_result(id, &value, sizeof(R));
  } else if constexpr (is_result<R>) {
    send_marshalled_result<R>(id, std::move(value));
  } else {
    send_result_that_stays(id, std::make_unique<kept_value<R>>(std::move(value)));
  }
}

template <class R>
R take_value(ticket_id id) {
  if constexpr (std::is_void_v<R>) {
    ticket_take(id, nullptr, 0);
  } else if constexpr (travels<R> && std::is_trivially_default_constructible_v<R> &&
                       std::is_trivially_copyable_v<R>) {
    R r;  // the compiler builds it where the caller wants the result
    if constexpr (sizeof(R) <= sizeof(std::uint64_t)) {
      const std::uint64_t word = ticket_take_word(id, sizeof(R));
      std::memcpy(&r, &word, sizeof(R));
    } else {
      ticket_take(id, &r, sizeof(R));
    }
    return r;
  } else if constexpr (travels<R>) {
    room<R> r;
    ticket_take(id, &r.value, sizeof(R));
    return std::move(r.value);
  } else if constexpr (is_result<R>) {
    return take_marshalled_result<R>(id);
  } else {
    return take_value_that_stays<R>(id);
  }
}

/// Runs `body` and sends what it returns or throws to `id`. The catch block is left before
/// anything is sent: a piece that finishes has no exception in flight.
template <class R, class Body>
void send_outcome(ticket_id id, Body&& body) {
  std::exception_ptr failure;
  try {
    if constexpr (std::is_void_v<R>) {
      body();
      send_result(id, nullptr, 0);
    } else {
      send_value<R>(id, body());
    }
    return;
  } catch (const thrown_past&) {
    failure = caught_past();
  } catch (...) {
    failure = caught_past();
  }
  send_exception(id, failure);
}

}  // namespace sojourn::detail
