// SPDX-License-Identifier: Apache-2.0
//
// Round trips of the runtime's own messages, without a future: a request whose handler sends one
// back, from user's buffer to user's buffer (common/one_way.hpp says how little each costs). What
// the paper calls a request and a reply of active messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <sojourn/sojourn.hpp>

#include "common/one_way.hpp"

namespace bench {

/// The handlers of both sides; rank 0 sends the next when the last has come back.
class request_reply {
 public:
  /// Called on rank 0: so many round trips, of so many bytes there and back, at least 8.
  static void exchange(std::uint64_t round_trips, std::size_t there, std::size_t back) {
    sizes_ = {there, back};
    left_ = round_trips;
    auto finished = finished_.expect();
    send(1, there, asked_);
    finished.get();
  }

 private:
  struct sizes {
    std::size_t there;
    std::size_t back;
  };

  static void send(int to, std::size_t bytes, std::uint16_t handler) {
    const sojourn::detail::outgoing room = sojourn::detail::begin_request(to, bytes, false);
    std::memcpy(room.payload, table.out.data(), bytes);
    // In front of what is asked: how much is to come back.
    if (handler == asked_) std::memcpy(room.payload, &sizes_.back, sizeof sizes_.back);
    sojourn::detail::commit_request(to, handler, room.ticket);
  }
  static void receive(sojourn::detail::request& message) {
    std::memcpy(table.in.data(), message.payload, message.bytes);
    message.consume();
  }
  static void asked(sojourn::detail::request& message) {
    receive(message);
    std::size_t back = 0;
    std::memcpy(&back, table.in.data(), sizeof back);
    send(0, back, answered_);
  }
  static void answered(sojourn::detail::request& message) {
    receive(message);
    if (--left_ > 0) return send(1, sizes_.there, asked_);
    finished_.signal();
  }

  inline static sizes sizes_{};
  inline static std::uint64_t left_ = 0;
  inline static occurrence finished_;
  inline static const std::uint16_t asked_ =
      sojourn::detail::register_request_handler(&asked, false);
  inline static const std::uint16_t answered_ =
      sojourn::detail::register_request_handler(&answered, false);
};

/// The same with what the runtime has for answers: a ticket that the caller waits for where it
/// stands.
class request_ticket {
 public:
  static void exchange(std::uint64_t round_trips, std::size_t there, std::size_t back) {
    for (std::uint64_t i = 0; i < round_trips; ++i) {
      const sojourn::detail::outgoing room = sojourn::detail::begin_request(1, there, true);
      std::memcpy(room.payload, table.out.data(), there);
      std::memcpy(room.payload, &back, sizeof back);
      sojourn::detail::commit_request(1, handler_, room.ticket);
      sojourn::detail::ticket_take(room.ticket, table.in.data(), back);
    }
  }

 private:
  static void asked(sojourn::detail::request& message) {
    std::memcpy(table.in.data(), message.payload, message.bytes);
    const sojourn::detail::ticket_id answer = message.ticket;
    message.consume();
    std::size_t back = 0;
    std::memcpy(&back, table.in.data(), sizeof back);
    sojourn::detail::send_result(answer, table.out.data(), back);
  }
  inline static const std::uint16_t handler_ =
      sojourn::detail::register_request_handler(&asked, false);
};

}  // namespace bench
