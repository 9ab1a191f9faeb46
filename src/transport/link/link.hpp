// SPDX-License-Identifier: Apache-2.0
// The contract of a link: carries the messages between this rank and ranks of other hosts. It takes
// them out of the rings of far ranks (far_rank.hpp) and puts what has come into these. It knows the
// network; the transport that owns it knows what the program sees of a rank. Nothing here waits.
#pragma once

#include <cstdint>
#include <span>

#include "memory/runtime_resource.hpp"
#include "transport/far/far_rank.hpp"

namespace sojourn::detail {

/// What links keep is in the runtime's memory: their code runs on the fibers' stacks.
class link : public in_runtime_memory {
 public:
  link() = default;
  link(const link&) = delete;
  link& operator=(const link&) = delete;
  virtual ~link() = default;

  /// The far ranks by number, null for those of this host. Called once, before the first message.
  virtual void begin(std::span<far_rank* const> ranks) = 0;

  /// There may be something to send to this rank: sends what the network takes at once.
  virtual void push(int rank) = 0;
  /// Takes in what has come, and sends what can go by now. `thoroughly`: of all ranks; else of
  /// those that have spoken last, which costs less.
  virtual void pump(bool thoroughly) = 0;
  /// From now on, and until the same with `nothing`, push() and pump(false) are called by a signal
  /// handler. Where it has interrupted a library, that may be allocating memory: a link that cannot
  /// do without leaves everything for later.
  virtual void enter_handler(interrupted) {}

  /// Something that goes to this rank has not left this process yet. Never of a lost rank.
  virtual bool has_unsent(int rank) = 0;
  /// The process is to end: nothing more will be written to the rings, nor read there. Where
  /// messages can be lost with the process that has sent them, has_unsent() is true from now on
  /// until the other rank has them.
  virtual void end() {}

  /// Readable (poll(2)) when pump() would move something, once arm() has said true.
  virtual int descriptor() const = 0;
  /// To be called before a sleep on the descriptor. False when there is something to pump now.
  virtual bool arm() = 0;

  /// How often this end has handed something to the network, and taken something from it, where the
  /// network keeps such parts whole: when the sums over all ranks are equal, nothing is under way.
  struct parts {
    std::uint64_t sent = 0;
    std::uint64_t came = 0;
  };
  virtual parts moved() const { return {}; }

  /// A rank to which the connection has ended, each of them once; -1 when there is none. Why, for
  /// people, in `why`.
  virtual int next_broken(const char*& why) = 0;
  /// The rank is lost: its connections end.
  virtual void lose(int rank) = 0;
};

}  // namespace sojourn::detail
