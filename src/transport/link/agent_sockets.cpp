// SPDX-License-Identifier: Apache-2.0
#include "transport/link/agent_sockets.hpp"

#include <poll.h>

#include <cerrno>
#include <cstdio>

#include "base/check.hpp"
#include "base/owned_descriptors.hpp"
#include "transport/link/agent_channel.hpp"

namespace sojourn::detail {

namespace {

/// May wait: the agent reads whatever is sent to it, and when it ends, it ends its ranks.
void tell_agent(int channel, const rank_to_agent& packet) {
  while (!send_packet(channel, &packet, sizeof packet, -1)) {
    if (errno != EAGAIN) return;
    pollfd room{channel, POLLOUT, 0};
    (void)::poll(&room, 1, -1);
  }
}

}  // namespace

agent_sockets::agent_sockets(int channel) : channel_(channel) { own_descriptor(channel); }

agent_sockets::~agent_sockets() { close_owned(channel_); }

void agent_sockets::want(int rank) { tell_agent(channel_, {rank_to_agent::wants, rank, ""}); }

bool agent_sockets::take(int& rank, connection& made) {
  agent_to_rank packet;
  bool has_ended = false;
  const bool came = take_packet(channel_, &packet, sizeof packet, made.socket, has_ended);
  if (has_ended) die("the agent of this host has ended");
  if (!came) return false;
  if (made.socket < 0) die("the agent of this host has sent what is no connection");
  own_descriptor(made.socket);
  rank = packet.rank;
  made.keys.reset();
  if (packet.is_sealed != 0) made.keys = packet.keys;
  return true;
}

void agent_sockets::tell_broken(int rank, const char* why) {
  rank_to_agent packet{rank_to_agent::broke, rank, ""};
  std::snprintf(packet.why, sizeof packet.why, "%s", why);
  tell_agent(channel_, packet);
}

}  // namespace sojourn::detail
