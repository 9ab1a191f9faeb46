// SPDX-License-Identifier: Apache-2.0
//
// One-way messages sent to and fro between ranks 0 and 1, each copied from a user's buffer into a
// user's buffer: half a round trip is what a message costs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <sojourn/sojourn.hpp>

namespace bench {

/// Something that a handler of this rank brings about and a fiber of this rank waits for.
class occurrence {
 public:
  /// The future that signal() makes ready.
  sojourn::future<void> expect() {
    ticket_ = sojourn::detail::ticket_open();
    return sojourn::detail::future_access::of_ticket<sojourn::future<void>>(ticket_);
  }
  void signal() { sojourn::detail::send_result(ticket_, nullptr, 0); }

 private:
  sojourn::detail::ticket_id ticket_ = 0;
};

/// This rank's part in a ping-pong. Rank 1 sends back whatever arrives; rank 0 does so until it has
/// seen `left` messages.
struct ping_pong {
  std::array<std::byte, 64 * 1024> out{};
  std::array<std::byte, 64 * 1024> in{};
  std::uint64_t left = 0;
  occurrence finished;

  /// Whether this rank sends the next message.
  bool goes_on() {
    if (sojourn::rank_me() != 0) return true;
    if (--left > 0) return true;
    finished.signal();
    return false;
  }
};
inline ping_pong table;

/// The runtime's own message, of any size: marshalled in place in the ring to the other rank, read
/// in place by the handler. Nothing that Sojourn sends is cheaper.
class active_message {
 public:
  static void send(std::size_t bytes) {
    const int to = 1 - sojourn::rank_me();
    const sojourn::detail::outgoing room = sojourn::detail::begin_request(to, bytes, false);
    std::memcpy(room.payload, table.out.data(), bytes);
    sojourn::detail::commit_request(to, handler_, room.ticket);
  }

 private:
  static void arrived(sojourn::detail::request& message) {
    const std::size_t bytes = message.bytes;
    std::memcpy(table.in.data(), message.payload, bytes);
    message.consume();
    if (table.goes_on()) send(bytes);
  }
  inline static const std::uint16_t handler_ =
      sojourn::detail::register_request_handler(&arrived, false);
};

/// The public one-way call with an argument of `Bytes` bytes.
template <std::size_t Bytes>
struct one_way_call {
  using payload = std::array<std::byte, Bytes>;

  static void send() {
    payload argument;
    std::memcpy(argument.data(), table.out.data(), Bytes);
    sojourn::rpc_ff(
        1 - sojourn::rank_me(), [](const payload& arrived) { deliver(arrived); }, argument);
  }
  static void deliver(const payload& arrived) {
    std::memcpy(table.in.data(), arrived.data(), Bytes);
    if (table.goes_on()) send();
  }
};

/// Called on rank 0: `round_trips` messages there and as many back. `send()` sends one.
template <class Send>
void exchange(std::uint64_t round_trips, Send send) {
  table.left = round_trips;
  auto finished = table.finished.expect();
  send();
  finished.get();
}

}  // namespace bench
