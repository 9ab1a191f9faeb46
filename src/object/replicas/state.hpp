// SPDX-License-Identifier: Apache-2.0
// What a rank knows of one replicated object.
#pragma once

#include <cstdint>
#include <vector>

#include "object/replicas/message.hpp"

namespace sojourn::detail::replicas {

/// A call of a rank that reads the object, and what it waits for.
struct waiting_call {
  enum class until : std::uint8_t {
    here,      ///< There is a version here.
    newer,     ///< What reads would find here is no older than `number`.
    refreshed  ///< Its own answer comes.
  };
  std::uint64_t call;
  until what;
  version number = 0;
};

/// Of a rank other than the writer.
struct reader_state {
  version here = 0;         ///< 0: none.
  subscription latest = 0;  ///< The last subscription.
  bool asks = false;        ///< It is not answered yet.
  bool is_ended = false;    ///< The object has been destroyed.
  bool is_lost = false;     ///< The writer has ended.
  std::vector<waiting_call> waiting;
};

struct subscriber {
  int rank;
  subscription of;
  version in_flight = 0;     ///< A push of it has not been answered; 0: none.
  version acknowledged = 0;  ///< The subscriber has this version, or one that is newer.
};

/// An update that is answered when no subscriber is more than `behind` versions behind it.
struct waiting_update {
  std::uint64_t call;
  version number;
  version behind;
};

/// Of the writer.
struct writer_state {
  version newest = 1;
  bool is_ended = false;
  std::vector<subscriber> subscribers;
  std::vector<waiting_update> waiting;
};

}  // namespace sojourn::detail::replicas
