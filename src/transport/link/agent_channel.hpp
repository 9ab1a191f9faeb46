// SPDX-License-Identifier: Apache-2.0
// What a rank and the agent of its host say to each other, each message in a packet of its own
// (SOCK_SEQPACKET). The agent makes connections to ranks of other hosts, and accepts only
// connections of those that know the job's secret. So a rank listens nowhere, and never reads what
// a stranger has sent.
#pragma once

#include <cstdint>

#include "transport/link/sealed_socket.hpp"

namespace sojourn::detail {

struct rank_to_agent {
  enum kind : std::uint32_t {
    wants,  ///< There is a message for `rank`, but no connection yet.
    broke,  ///< The connection to `rank` has ended: `why`.
  };
  kind says;
  std::int32_t rank;
  char why[120];  ///< NUL-terminated.
};

/// Comes with a descriptor: the socket that is connected to `rank`.
struct agent_to_rank {
  std::int32_t rank;
  std::uint32_t is_sealed;  ///< All bytes on this socket are encrypted with these keys.
  seal_keys keys;
};

/// Sends one such packet, without waiting; with `descriptor` unless it is -1. Returns false, with
/// errno, when it could not be sent.
bool send_packet(int channel, const void* packet, std::size_t bytes, int descriptor);
/// Takes one packet that is there, of exactly `bytes`. Returns false when there is none, or it has
/// another length. `descriptor`: the one that came with it, or -1. `has_ended`: the other end has
/// closed the channel.
bool take_packet(int channel, void* packet, std::size_t bytes, int& descriptor, bool& has_ended);

}  // namespace sojourn::detail
