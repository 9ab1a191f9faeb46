// SPDX-License-Identifier: Apache-2.0
// The contract of a transport: delivers active messages between ranks and sleeps until some
// arrive. It knows nothing of fibers or of what messages mean. One suite of conformance tests runs
// over every implementation; `shm` is the first.
//
// Messages from one rank to another of one class arrive whole, once and in the order of their
// commits; between classes and ranks there is no order. Each rank has room of its own for each
// class, so that requests that fill theirs hold up neither a reply nor what goes to another rank.
//
// Whoever uses a transport does not know where its ranks are. What may be refused for some of them
// (read_memory, poll_reply) can also be done by messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sojourn/clock.hpp"

namespace sojourn::detail {

enum class message_class : std::uint8_t { request, reply };

/// Bytes that a transport adds to a message's payload.
inline constexpr std::size_t header_bytes = 32;

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

/// Whose code a signal handler has interrupted: the program's own, or that of a library which the
/// program has called.
enum class interrupted : std::uint8_t { nothing, program, library };

class transport {
 public:
  static constexpr std::uint16_t flag_long = 0x8000;  ///< Used by transports.

  virtual ~transport() = default;

  /// Called once, when all ranks of the job have attached, before the first message.
  virtual void begin() = 0;

  /// Room for a message with `bytes` of payload to rank `to` (this rank included), 16-byte aligned;
  /// null when there is none now. Valid until commit; until then no other reserve may find room.
  /// Requires: bytes <= payload_max().
  virtual std::byte* reserve(int to, message_class kind, std::size_t bytes) = 0;
  /// Says that a message to `to` will be reserved soon, most likely as long a one as the last.
  /// Changes nothing but how long that takes.
  virtual void prepare(int to, message_class kind) = 0;
  /// Publishes what was reserved last for `to`, and wakes the rank when it sleeps. The message
  /// then arrives without any further call of this rank, as long as the way there is not full. To
  /// another host goes at once what the network and the rank there have room for; the rest, and of
  /// a long message as well, goes while this rank polls or waits.
  virtual void commit(int to, message_class kind, std::uint16_t handler, std::uint16_t flags,
                      std::uint64_t ticket) = 0;
  /// A payload that lies elsewhere, and stays as it is there until `returned(context)` is called:
  /// when it has left, or its receiver is lost. Any stack, also in a signal handler.
  struct loan {
    const std::byte* from;
    std::size_t bytes;
    void (*returned)(void* context);
    void* context;
  };
  /// Commits a message with this payload, which is not copied. False, and nothing is done, when
  /// there is no room now, or payloads to that rank are copied anyway. The payload may be returned
  /// before this returns.
  virtual bool lend(int, message_class, std::uint16_t /* handler */, std::uint16_t /* flags */,
                    std::uint64_t /* ticket */, const loan&) {
    return false;
  }
  /// Sets a request aside that has been reserved and is not committed: until it is taken up again,
  /// replies can be reserved and committed. Without one it does nothing.
  struct unfinished {
    void* message;
    std::uint16_t flags;
  };
  virtual unfinished set_aside() = 0;
  virtual void take_up(const unfinished& message) = 0;
  /// True when a message has been reserved and not been committed.
  virtual bool is_reserved() const = 0;
  /// The longest payload; the same for all ranks.
  virtual std::size_t payload_max() const = 0;
  /// True when a message of `bytes` of payload could be reserved now. Other ranks, poll and wait
  /// change that; wait's other_work may ask.
  virtual bool has_room(int to, message_class kind, std::size_t bytes) const = 0;

  /// Calls deliver(message, context) for the messages that have arrived, until `deliver` says to
  /// stop: at most `most` of each class from each rank in turn, all replies first, so that a
  /// rank mostly leaves a barrier before it sees what others send after it. Where `deliver`
  /// stopped, the next poll begins with the next rank. When `most` polls one after the other
  /// stopped at a reply, the next one takes requests first: replies that never cease hold them up
  /// no longer. `deliver` consumes the message before it returns. Returns how many were delivered.
  virtual int poll(bool (*deliver)(arrival&, void*), void* context, int most) = 0;
  /// As poll, for replies alone, or for those alone that are for the handler `only`, which pass
  /// over the others: these are delivered by the next poll. Any stack.
  static constexpr int any_handler = -1;
  virtual int poll_replies(bool (*deliver)(arrival&, void*), void* context, int most, int only) = 0;
  /// poll_replies, for one handler, and what that sends are done by a signal handler from now on,
  /// until the same with `nothing`.
  virtual void enter_handler(interrupted what) = 0;
  /// Delivers the next reply from `source` if it arrives within about a round trip and before any
  /// other message; else false. May always return false. Now and then it does so because requests
  /// are here, which wait as long as replies are taken in this way. Any stack.
  virtual bool poll_reply(int source, bool (*deliver)(arrival&, void*), void* context) = 0;
  /// True when waiting for a reply on the stack that wants it is better than leaving that stack:
  /// ranks need not share cores, and poll_reply waits.
  virtual bool spins_for_replies() const = 0;
  /// This rank has looked for messages many times and found none, because its fibers look, too,
  /// and give each other turns: lets others have its core for a moment, if it shares one.
  virtual void give_core_away() = 0;
  /// Frees a message's room. Once for each message.
  virtual void consume(const arrival& message) = 0;

  /// True when poll would deliver something. Cheap.
  virtual bool anything_arrived() const = 0;
  /// Returns when something has arrived, `other_work()` holds or now_ns() has reached
  /// `deadline_ns`: spins briefly, yields the core, then sleeps. `other_work` may look at what
  /// other ranks change (room to send), too. `around_sleep(true)` is called once nothing is left to
  /// do but to sleep, and `around_sleep(false)` on waking. Before it calls that, the rank is asleep
  /// for others (sleepers.hpp), and has looked for work again since: a message, room that a message
  /// of this rank waits for, and sleepers::wake end the sleep, whenever they come.
  virtual void wait(bool (*other_work)(), void (*around_sleep)(bool falls_asleep) = nullptr,
                    std::uint64_t deadline_ns = never_ns) = 0;

  /// Where the payload of a long reply belongs that begins to come from another host, so that it
  /// needs no copy: memory that stays until the reply is delivered, with this place as its payload
  /// however that is aligned, or its source is lost; until then its bytes may be anything. Null
  /// when the transport is to find room. Any stack.
  using reply_place = std::byte*(int source, std::uint16_t handler, std::uint16_t flags,
                                 std::uint64_t ticket, std::size_t bytes);
  /// Asks `place` from now on. A transport that has other room need not ask.
  virtual void place_replies(reply_place*) {}

  /// The rank has ended in the middle of the job, and all that came from it has been read: from now
  /// on there is room for whatever goes to it, which nobody reads.
  virtual void lose(int rank) = 0;
  /// Returns when everything that was committed has left this process, so that it may end.
  virtual void finish() = 0;

  /// Copies bytes once between this rank's memory and another's; the other rank does nothing for
  /// it. False when that is not possible between these two ranks, or when the other's process has
  /// ended: then a part may have been copied, which counts for nothing. Throws sojourn::error when
  /// there is no memory at the address.
  virtual bool read_memory(int from, std::uint64_t address, void* to, std::size_t bytes) = 0;
  virtual bool write_memory(int to, std::uint64_t address, const void* from, std::size_t bytes) = 0;

  /// SOJOURN_DELAY is on: messages that have arrived may be delivered later, in any order that this
  /// contract allows.
  virtual bool delays_messages() const = 0;
  /// How long a message is on its way at most, as far as SOJOURN_DELAY says; 0 without it. Whoever
  /// waits for an answer has no reason to wonder before.
  virtual std::uint64_t way_ns() const = 0;
  /// Where messages are delayed: whether the first request of this rank to itself, when such
  /// requests are not given to the transport, must wait. If so, yields the core. Requires: there is
  /// such a request. own_passed says that it is delivered.
  virtual bool holds_own() = 0;
  virtual void own_passed() = 0;
};

}  // namespace sojourn::detail
