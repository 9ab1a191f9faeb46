// SPDX-License-Identifier: Apache-2.0
// The contract of a link: carries the messages between this rank and ranks of other hosts. It takes
// messages out of the rings of far ranks (far_rank.hpp), and puts those that have come into them.
// The link knows the network; the transport that owns the link knows what the program sees of a
// rank. Nothing here waits.
#pragma once

#include <cstdint>
#include <span>

#include "memory/runtime_resource.hpp"
#include "transport/far/far_rank.hpp"

namespace sojourn::detail {

/// Links keep their data in the runtime's memory, because their code runs on the fibers' stacks.
class link : public in_runtime_memory {
 public:
  link() = default;
  link(const link&) = delete;
  link& operator=(const link&) = delete;
  virtual ~link() = default;

  /// `ranks`: the far ranks by number, null for ranks of this host. Called once, before the first
  /// message.
  virtual void begin(std::span<far_rank* const> ranks) = 0;

  /// There may be something to send to this rank: sends as much as the network takes at once.
  virtual void push(int rank) = 0;
  /// Takes in what has come, and sends what can leave by now. `thoroughly`: looks at all ranks;
  /// otherwise at those that have sent something last, which costs less.
  virtual void pump(bool thoroughly) = 0;
  /// From now on, until a call with `nothing`, a signal handler calls push() and pump(false). If it
  /// has interrupted a library, the library may be in the middle of an allocation: a link that has
  /// to allocate leaves everything for later.
  virtual void enter_handler(interrupted) {}

  /// True when something for this rank has not left this process yet. False for a lost rank.
  virtual bool has_unsent(int rank) = 0;
  /// The process is about to end: nothing more will be written to the rings, nor read from them. If
  /// messages can be lost when their sender's process ends, has_unsent() is true from now on until
  /// the other rank has them.
  virtual void end() {}

  /// After arm() has returned true, this descriptor is readable (poll(2)) when pump() would move
  /// something.
  virtual int descriptor() const = 0;
  /// To be called before a sleep on the descriptor. Returns false when there is something to pump
  /// now.
  virtual bool arm() = 0;

  /// How many parts this end has given to the network, and taken from it, if the network keeps such
  /// parts whole. When the sums over all ranks are equal, nothing is under way.
  struct parts {
    std::uint64_t sent = 0;
    std::uint64_t came = 0;
  };
  virtual parts moved() const { return {}; }

  /// A rank to which the connection has ended; -1 when there is none. Names each such rank once.
  /// `why`: the reason, for people.
  virtual int next_broken(const char*& why) = 0;
  /// The rank is lost: its connections end.
  virtual void lose(int rank) = 0;
};

}  // namespace sojourn::detail
