// SPDX-License-Identifier: Apache-2.0
// The part of the rank that has made a replicated object: it keeps the newest version, knows who
// subscribes, and has at most one push without answer to each subscriber.
#pragma once

#include <cstdint>

#include "object/replicas/message.hpp"
#include "object/replicas/services.hpp"
#include "object/replicas/state.hpp"

namespace sojourn::detail::replicas {

class writer {
 public:
  writer(writer_state& state, writer_services& by) : state_(state), by_(by) {}

  /// There is a new version, which is sent to the subscribers. Returns its number.
  version publish();
  /// True when no subscriber is more than `behind` versions behind version `number`. Otherwise the
  /// update is to wait until services::wake.
  bool is_near(std::uint64_t call, version number, version behind);
  /// The object has been destroyed. Updates that wait are answered: nobody reads it any more.
  void end();

  void arrive(int from, const message& m);
  /// `rank` has ended, and all that it sent has arrived.
  void note_end_of(int rank);

 private:
  void push_to(subscriber& s);
  subscriber* find(int rank);
  void forget(int rank);
  bool are_near(version number, version behind) const;
  void wake_satisfied();

  writer_state& state_;
  writer_services& by_;
};

}  // namespace sojourn::detail::replicas
