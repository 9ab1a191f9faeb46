// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other about an object.
#pragma once

#include <cstdint>

namespace sojourn::detail::coherence {

/// The address at which the object was made. It stays the same when the object moves.
using object_id = std::uint64_t;

inline constexpr int nobody = -1;

/// Names a call in the whole job.
struct call_name {
  int rank = nobody;         ///< Where it was made.
  std::uint64_t number = 0;  ///< Given there.

  explicit operator bool() const { return rank != nobody; }
  friend bool operator==(const call_name&, const call_name&) = default;
};

/// A call of a method of the object.
struct call {
  call_name name;
  bool writes = false;   ///< The method is not const.
  void* body = nullptr;  ///< What is called, and with which arguments: for services alone.
};

/// Requests, and then replies: messages between two ranks keep their order within these two
/// classes, and not between them. A reply is never answered.
enum class kind : std::uint8_t {
  run,      ///< Run this call where the object is.
  copy,     ///< The same, or give me a copy, on which I run it.
  refresh,  ///< The bytes, once, for a method that is suspended on a copy that is no longer good.
  take,     ///< To home: the object is to move to me, where I run this call.
  hand,     ///< Home to owner: hand the object over to `rank`.
  invalidate,  ///< Owner to a rank with a copy: give it up. Names the call that the copy was for.
  give,        ///< Owner, which is `rank`, to home: take the object back.
  destroy,     ///< To home.
  kill,        ///< Home to owner: destroy the object.
  lost,        ///< Home to all: a rank has ended, and the object with it.
  query,       ///< Home to a rank that an object was on its way to when its owner, `rank`, ended:
               ///< is it there?

  result,        ///< The call has ended, without the object's having come.
  grant,         ///< A copy.
  bytes,         ///< What refresh asked for.
  object,        ///< The object itself.
  acknowledged,  ///< The copy is given up.
  moved,         ///< Owner to home: the order is carried out, or not, as `outcome` says.
  have           ///< The answer to a query: `outcome` is done if the object is there.
};
inline constexpr bool is_reply(kind k) { return k >= kind::result; }

enum class outcome : std::uint8_t { done, refused, destroyed, lost };

struct message {
  kind what{};
  object_id object = 0;
  call about{};           ///< With the name nobody when it is about no call.
  bool is_sure = false;   ///< Home sent it: the object is there, or on its way there.
  std::uint8_t hops = 0;  ///< Ranks that it was sent to.
  outcome how{};          ///< Of result, bytes, moved and have.
  int rank = nobody;      ///< Of hand, give and query.
};

}  // namespace sojourn::detail::coherence
