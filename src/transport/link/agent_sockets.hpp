// SPDX-License-Identifier: Apache-2.0
// Sockets that the agent of this host connects when this rank has its first message for a rank of
// another host, or such a rank has one for this rank.
#pragma once

#include "transport/link/socket_link.hpp"

namespace sojourn::detail {

class agent_sockets final : public socket_source {
 public:
  /// `channel` leads to the agent (agent_channel.hpp). This object closes it.
  explicit agent_sockets(int channel);
  ~agent_sockets() override;

  void want(int rank) override;
  int descriptor() const override { return channel_; }
  bool take(int& rank, connection& made) override;
  void tell_broken(int rank, const char* why) override;

 private:
  int channel_;
};

}  // namespace sojourn::detail
