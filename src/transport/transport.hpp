// SPDX-License-Identifier: Apache-2.0
// The contract of a transport: delivers active messages between ranks and sleeps until some
// arrive. It knows nothing of fibers or of what messages mean. One suite of conformance tests runs
// over every implementation; `shm` is the first.
//
// Messages from one rank to another of one class arrive whole, once and in the order of their
// commits; between classes and ranks there is no order. Requests and replies have separate room, so
// that requests that fill theirs never hold up a reply.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sojourn::detail {

enum class message_class : std::uint8_t { request, reply };

/// Bytes that a transport adds to a message's payload.
inline constexpr std::size_t header_bytes = 32;

/// A time (now_ns) that never comes.
inline constexpr std::uint64_t no_deadline = ~std::uint64_t{0};

/// A message as its receiver sees it, valid until it is consumed.
struct arrival {
  int source;
  message_class kind;
  std::uint16_t handler;
  std::uint16_t flags;
  std::uint64_t ticket;
  const std::byte* payload;  ///< 16-byte aligned.
  std::size_t bytes;         ///< Of payload.
  const void* message;       ///< Used by the transport only.
};

class transport {
 public:
  static constexpr std::uint16_t flag_long = 0x8000;  ///< Used by transports.

  virtual ~transport() = default;

  /// Room for a message with `bytes` of payload to rank `to` (this rank included), 16-byte aligned;
  /// null when there is none now. Valid until commit; until then no other reserve may find room.
  /// Requires: bytes <= payload_max().
  virtual std::byte* reserve(int to, message_class kind, std::size_t bytes) = 0;
  /// Publishes what was reserved last for `to`. Wakes the rank when it sleeps.
  virtual void commit(int to, message_class kind, std::uint16_t handler, std::uint16_t flags,
                      std::uint64_t ticket) = 0;
  virtual std::size_t payload_max() const = 0;

  /// Calls deliver(message, context) for the messages that have arrived, until `deliver` says to
  /// stop: at most `most` of each class from each rank in turn, all replies first (so that a
  /// barrier is left before what others send after it arrives). `deliver` consumes the message
  /// before it returns. Returns how many were delivered.
  virtual int poll(bool (*deliver)(arrival&, void*), void* context, int most) = 0;
  /// Delivers the next reply from `source` if it arrives within about a round trip and before any
  /// other message; else false, also when ranks share cores. Any stack.
  virtual bool poll_reply(int source, bool (*deliver)(arrival&, void*), void* context) = 0;
  /// Frees a message's room. Once for each message.
  virtual void consume(const arrival& message) = 0;

  /// True when poll would deliver something. Cheap.
  virtual bool anything_arrived() const = 0;
  /// Returns when something has arrived, `other_work()` holds or now_ns() has reached
  /// `deadline_ns`: spins briefly, yields the core, then sleeps. `other_work` may look at what
  /// other ranks change (room to send), too. `around_sleep(true)` is called once nothing is left to
  /// do but to sleep, and `around_sleep(false)` on waking; a wake that comes in between is not
  /// lost.
  virtual void wait(bool (*other_work)(), void (*around_sleep)(bool falls_asleep) = nullptr,
                    std::uint64_t deadline_ns = no_deadline) = 0;

  /// Copies bytes once between this rank's memory and another's; the other rank does nothing for
  /// it. False when the system does not permit this, or when the other rank's process has ended:
  /// then a part may have been copied, which counts for nothing. Throws sojourn::error when there
  /// is no memory at the address.
  virtual bool read_memory(int from, std::uint64_t address, void* to, std::size_t bytes) = 0;
  virtual bool write_memory(int to, std::uint64_t address, const void* from, std::size_t bytes) = 0;
};

}  // namespace sojourn::detail
