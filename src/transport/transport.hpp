// SPDX-License-Identifier: Apache-2.0
// The contract of a transport: delivers active messages between ranks and sleeps until some
// arrive. It knows nothing of fibers or of what messages mean. One suite of conformance tests runs
// over every implementation; `shm` is the first.
//
// Messages of one class from one rank to another arrive whole, once and in the order of their
// commits; between classes and ranks there is no order. Each rank has room of its own for each
// class. So requests that fill their room hold up neither replies nor messages to other ranks.
//
// The user of a transport does not know where its ranks are. Operations that may be refused for
// some ranks (read_memory, poll_reply) can also be done by messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sojourn/waiting/clock.hpp"

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
  std::size_t bytes;         ///< Of the payload.
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
  /// Says that a message to `to` will be reserved soon, most likely as long as the last one. Only
  /// makes reserving it faster.
  virtual void prepare(int to, message_class kind) = 0;
  /// Publishes the message that was reserved last for `to`, and wakes that rank if it sleeps. The
  /// message then arrives without any further call of this rank, as long as the way there is not
  /// full. If `to` is on another host, as much leaves at once as the network and that rank have
  /// room for. The rest, also that of a long message, leaves while this rank polls or waits.
  virtual void commit(int to, message_class kind, std::uint16_t handler, std::uint16_t flags,
                      std::uint64_t ticket) = 0;
  /// A payload that lies in memory of the caller, and does not change until `returned(context)` is
  /// called: when the payload has left, or its receiver is lost. The call may come on any stack,
  /// also in a signal handler.
  struct loan {
    const std::byte* from;
    std::size_t bytes;
    void (*returned)(void* context);
    void* context;
  };
  /// Commits a message with this payload, without copying it. Returns false, and does nothing, when
  /// there is no room now, or when payloads to that rank are copied anyway. The payload may be
  /// returned before this function returns.
  virtual bool lend(int, message_class, std::uint16_t /* handler */, std::uint16_t /* flags */,
                    std::uint64_t /* ticket */, const loan&) {
    return false;
  }
  /// Sets aside a request that is reserved and not committed: until take_up(), replies can be
  /// reserved and committed. Does nothing when there is no such request.
  struct unfinished {
    void* message;
    std::uint16_t flags;
  };
  virtual unfinished set_aside() = 0;
  virtual void take_up(const unfinished& message) = 0;
  /// True when a message is reserved and not committed.
  virtual bool is_reserved() const = 0;
  /// The longest payload; the same for all ranks.
  virtual std::size_t payload_max() const = 0;
  /// True when a message with `bytes` of payload could be reserved now. The answer is changed by
  /// other ranks, and by poll and wait. wait's other_work may ask.
  virtual bool has_room(int to, message_class kind, std::size_t bytes) const = 0;

  /// Calls deliver(message, context) for the messages that have arrived, until `deliver` says to
  /// stop. Takes at most `most` of each class from each rank in turn, and all replies first, so
  /// that a rank mostly leaves a barrier before it sees what others send after it. After a stop,
  /// the next poll begins with the next rank. When `most` polls one after the other have stopped at
  /// a reply, the next one takes requests first, so that endless replies do not hold up requests.
  /// `deliver` consumes the message before it returns. Returns how many messages were delivered.
  virtual int poll(bool (*deliver)(arrival&, void*), void* context, int most) = 0;
  /// As poll, but only for replies. If `only` is the number of a handler, delivers only replies for
  /// that handler; the next poll delivers those that were passed over. May be called on any stack.
  static constexpr int any_handler = -1;
  virtual int poll_replies(bool (*deliver)(arrival&, void*), void* context, int most, int only) = 0;
  /// From now on, a signal handler calls poll_replies for one handler, and sends what the delivered
  /// replies make it send. Until a call with `nothing`.
  virtual void enter_handler(interrupted what) = 0;
  /// Delivers the next reply from `source` if it arrives within about a round trip and before any
  /// other message; otherwise returns false. May always return false. Does so now and then because
  /// requests have arrived, which wait as long as replies are taken in this way. May be called on
  /// any stack.
  virtual bool poll_reply(int source, bool (*deliver)(arrival&, void*), void* context) = 0;
  /// True when a fiber that wants a reply had better wait on its stack than leave it: ranks need
  /// not share cores, and poll_reply waits.
  virtual bool spins_for_replies() const = 0;
  /// To be called when this rank has looked for messages many times and found none, because its
  /// fibers look, too, and give each other turns. Lets others have its core for a moment, if it
  /// shares one.
  virtual void give_core_away() = 0;
  /// Frees a message's room. To be called once for each message.
  virtual void consume(const arrival& message) = 0;

  /// True when poll would deliver something. Cheap.
  virtual bool anything_arrived() const = 0;
  /// Returns when something has arrived, `other_work()` returns true or now_ns() has reached
  /// `deadline_ns`: spins briefly, yields the core, then sleeps. `other_work` may look at what
  /// other ranks change, too, such as room to send. `around_sleep(true)` is called when nothing is
  /// left to do but to sleep, and `around_sleep(false)` on waking. Before around_sleep(true), the
  /// rank has become asleep for others (sleepers.hpp), and has looked for work once more. So a
  /// message, room that a message of this rank waits for, and sleepers::wake all end the sleep,
  /// whenever they come.
  /// of this rank waits for, and sleepers::wake end the sleep, whenever they come.
  virtual void wait(bool (*other_work)(), void (*around_sleep)(bool falls_asleep) = nullptr,
                    std::uint64_t deadline_ns = never_ns) = 0;

  /// Called when a long reply begins to come from another host: returns the memory for its payload,
  /// so that the payload needs no copy. This memory must stay until the reply is delivered, or its
  /// source is lost. Until then its bytes may be anything. The delivered reply has this place as
  /// its payload, however it is aligned. Null when the transport is to find room. May be called on
  /// any stack.
  using reply_place = std::byte*(int source, std::uint16_t handler, std::uint16_t flags,
                                 std::uint64_t ticket, std::size_t bytes);
  /// From now on the transport asks `place`. A transport that needs no such memory need not ask.
  virtual void place_replies(reply_place*) {}

  /// To be called when the rank has ended in the middle of the job, and all of its messages have
  /// been read. From now on there is room for all messages to it; nobody reads them.
  virtual void lose(int rank) = 0;
  /// Returns when all committed messages have left this process, so that it may end.
  virtual void finish() = 0;

  /// Copy bytes once between this rank's memory and another's; the other rank does nothing for it.
  /// Return false when that is not possible between these two ranks, or when the other's process
  /// has ended: a part may have been copied then, which must not be used. Throw sojourn::error when
  /// there is no memory at the address.
  virtual bool read_memory(int from, std::uint64_t address, void* to, std::size_t bytes) = 0;
  virtual bool write_memory(int to, std::uint64_t address, const void* from, std::size_t bytes) = 0;

  /// SOJOURN_DELAY is on: messages that have arrived may be delivered later, in any order that this
  /// contract allows.
  virtual bool delays_messages() const = 0;
  /// The longest time that SOJOURN_DELAY lets a message be on its way; 0 without it. An answer that
  /// takes as long is not late.
  virtual std::uint64_t way_ns() const = 0;
  /// For requests of this rank to itself that are not given to the transport. True when messages
  /// are delayed and the first of these requests must wait; yields the core then. Requires: there
  /// is such a request. own_passed() says that it is delivered.
  virtual bool holds_own() = 0;
  virtual void own_passed() = 0;
};

}  // namespace sojourn::detail
