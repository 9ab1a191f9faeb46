// SPDX-License-Identifier: Apache-2.0
// Messages about replicated objects (replicas/message.hpp) as they go from rank to rank.
#pragma once

#include <cstddef>
#include <cstdint>

#include "message/message_reader.hpp"
#include "object/replicas/message.hpp"
#include "sojourn/detail/replicas.hpp"

namespace sojourn::detail {

/// The head of a message. The bytes of a version follow, if it brings one.
struct replicas_message {
  replica_name of;
  std::uint64_t number;
  std::uint64_t call;
  replicas::subscription subscription;
  replicas::kind what;
  replicas::outcome how;
  std::uint16_t brings;
  std::uint64_t unused;

  replicas::message told() const {
    return {.what = what,
            .how = how,
            .brings = brings != 0,
            .of = subscription,
            .number = number,
            .call = call};
  }
};
// So that what follows is aligned as values in messages are.
static_assert(sizeof(replicas_message) % 16 == 0);

/// A version may take so many bytes in a message.
inline constexpr std::size_t longest_version = 4u << 20;

/// Sends a message, and the bytes of a version with it; copies both. Never suspends: a request for
/// which there is no room waits in this rank's memory. To a rank that has ended nothing is sent.
void send_about_replica(int to, const replica_name& of, const replicas::message& m,
                        const void* bytes = nullptr, std::size_t size = 0);

}  // namespace sojourn::detail
