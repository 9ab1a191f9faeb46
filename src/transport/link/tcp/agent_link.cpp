// SPDX-License-Identifier: Apache-2.0
#include "transport/link/tcp/agent_link.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/check.hpp"
#include "transport/link/tcp/agent_channel.hpp"

namespace sojourn::detail::tcp {

namespace {

/// The agent reads whatever is sent to it, and ends its ranks when it ends itself.
void tell_agent(int channel, const rank_to_agent& packet) {
  while (!send_packet(channel, &packet, sizeof packet, -1)) {
    if (errno != EAGAIN) return;
    pollfd room{channel, POLLOUT, 0};
    (void)::poll(&room, 1, -1);
  }
}

}  // namespace

agent_link::~agent_link() { ::close(channel_); }

void agent_link::begin(std::span<far_rank* const> ranks) {
  stream_link::begin(ranks);
  is_wanted_.assign(ranks.size(), false);
  watch_also(channel_);
}

void agent_link::connect(int rank) {
  if (is_wanted_[static_cast<std::size_t>(rank)]) return;
  is_wanted_[static_cast<std::size_t>(rank)] = true;
  tell_agent(channel_, {rank_to_agent::wants, rank, ""});
}

void agent_link::on_other() {
  agent_to_rank packet;
  int socket = -1;
  bool has_ended = false;
  while (take_packet(channel_, &packet, sizeof packet, socket, has_ended)) {
    if (socket < 0 || static_cast<std::size_t>(packet.rank) >= is_wanted_.size())
      die("the agent of this host has sent what is no connection");
    is_wanted_[static_cast<std::size_t>(packet.rank)] = true;
    connected(packet.rank, socket);
  }
  if (has_ended) die("the agent of this host has ended");
}

void agent_link::pump(bool thoroughly) {
  stream_link::pump(thoroughly);
  if (!thoroughly) return;
  const char* why = nullptr;
  for (int rank; (rank = next_broken(why)) >= 0;) {
    rank_to_agent packet{rank_to_agent::broke, rank, ""};
    std::snprintf(packet.why, sizeof packet.why, "%s", why);
    tell_agent(channel_, packet);
  }
}

}  // namespace sojourn::detail::tcp
