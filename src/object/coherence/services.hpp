// SPDX-License-Identifier: Apache-2.0
// What the protocol asks of the rank that it runs on. The runtime is one implementation; the tests
// have another, with all ranks in one process and every order of messages that may come about.
#pragma once

#include <cstdint>

#include "object/coherence/message.hpp"

namespace sojourn::detail::coherence {

/// How a call of this rank goes on that was told to wait.
enum class woken : std::uint8_t {
  on_object,  ///< On the object, which is here: after rank_objects::begin.
  on_copy,    ///< On a copy, which is here: the same.
  refreshed,  ///< On bytes that have just come, or are here as the object.
  again,      ///< It is to be made again.
  ended,      ///< The object has been destroyed for it.
  refused,    ///< The object was not destroyed for it: methods are suspended in it.
  destroyed,  ///< There is no object.
  lost        ///< A rank has ended that it needs.
};

/// The methods that are suspended in an object here.
enum class in_progress : std::uint8_t { nothing, reading, writing };

class services {
 public:
  virtual ~services() = default;

  virtual int ranks() const = 0;
  /// Where the object was made.
  virtual int home_of(object_id object) const = 0;
  /// Where the object may be now: a guess, other than this rank.
  virtual int guess(object_id object) const = 0;
  /// The object was at `rank` a moment ago.
  virtual void note_place(object_id object, int rank) = 0;
  virtual bool has_ended(int rank) const = 0;
  virtual in_progress methods_in(object_id object) const = 0;

  /// Sends a message. Grants, bytes and the object itself go with the bytes of what is here. Never
  /// delivers anything before it returns.
  virtual void send(int to, const message& m) = 0;
  /// The object's bytes have left, and nobody asks for them here any more.
  virtual void forget_object(object_id object) = 0;
  /// Destroys the object, which is here.
  virtual void destroy(object_id object) = 0;
  /// The copy is no longer good; methods may still be suspended in it.
  virtual void forget_copy(object_id object) = 0;

  /// Runs a call of another rank on the object here, and sends its result there. Anything may
  /// happen before it returns.
  virtual void run(object_id object, const call& c) = 0;
  /// A call of this rank goes on when its turn comes.
  virtual void wake(object_id object, const call_name& c, woken how) = 0;
  /// Calls rank_objects::go_on(object) soon, when nothing runs on this rank.
  virtual void go_on_later(object_id object) = 0;

  /// A message is impossible: ends the rank with a report.
  virtual void refuse(const message& m, const char* why) = 0;
};

}  // namespace sojourn::detail::coherence
