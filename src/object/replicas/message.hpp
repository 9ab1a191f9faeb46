// SPDX-License-Identifier: Apache-2.0
// What the writer of a replicated object and the ranks that read it tell each other.
#pragma once

#include <cstdint>

namespace sojourn::detail::replicas {

/// Versions of an object are counted from 1 on; 0 stands for none.
using version = std::uint64_t;
/// Each rank counts its subscriptions to an object from 1 on.
using subscription = std::uint32_t;

/// Requests, and then replies: messages between two ranks keep their order within these two
/// classes, and not between them. A reply is never answered.
enum class kind : std::uint8_t {
  subscribe,  ///< To the writer: give me the newest version, and push to me what comes after it.
  refresh,    ///< To the writer: give me the newest version, if it is newer than this one.
  push,       ///< To a subscriber: a new version.
  ended,      ///< To a subscriber: the object has been destroyed.

  subscribed,
  refreshed,
  pushed  ///< The answer to a push.
};
inline constexpr bool is_reply(kind k) { return k >= kind::subscribed; }
/// The writer sends it.
inline constexpr bool is_of_writer(kind k) {
  return k == kind::push || k == kind::ended || k == kind::subscribed || k == kind::refreshed;
}

enum class outcome : std::uint8_t {
  done,
  dropped,   ///< Of pushed: the subscription is over, the version has not been taken.
  destroyed  ///< Of subscribed and refreshed: there is no object.
};

struct message {
  kind what{};
  outcome how{};
  bool brings = false;     ///< The bytes of the version come along.
  subscription of = 0;     ///< Which subscription it is about.
  version number = 0;      ///< Of refresh: the version that the reader has; else the one meant.
  std::uint64_t call = 0;  ///< Of refresh and refreshed: which call of the reader's rank asks.
};

}  // namespace sojourn::detail::replicas
