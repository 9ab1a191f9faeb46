// SPDX-License-Identifier: Apache-2.0
// The part of a rank that reads a replicated object whose writer is another rank. It has at most
// one version that is read; an answer or a push replaces it by a newer one.
//
// tests/models/replicated goes through all states that this code and the writer's (writer.hpp) can
// come to in small jobs.
#pragma once

#include <cstdint>

#include "object/replicas/message.hpp"
#include "object/replicas/services.hpp"
#include "object/replicas/state.hpp"

namespace sojourn::detail::replicas {

/// What a call of this rank does next.
enum class next : std::uint8_t {
  go_on,  ///< What it wants is here.
  wait,   ///< Until services::wake.
  ended,  ///< The object has been destroyed.
  lost    ///< The writer has ended.
};

class reader {
 public:
  reader(reader_state& state, reader_services& by) : state_(state), by_(by) {}

  // Calls of this rank, on its fibers.

  /// A call wants to read, and there may be no version here.
  next read(std::uint64_t call);
  /// A call wants the newest version that there is now, or a newer one, to be here.
  next refresh(std::uint64_t call);
  /// An update of this rank has made version `number`, which reads here are to see from now on.
  next see(std::uint64_t call, version number);
  /// Gives up the version that is here, and the subscription. One that is on its way is kept.
  void drop();

  // What happens to this rank.

  void arrive(const message& m);
  /// The writer has ended, and all that it sent has arrived.
  void note_end_of_writer();

 private:
  void subscribe();
  void install(version number);
  void end();
  bool is_seen(version number) const;
  /// Wakes the calls that wait for what is so now.
  void wake_satisfied();
  void wake_all(woken how);

  reader_state& state_;
  reader_services& by_;
};

}  // namespace sojourn::detail::replicas
