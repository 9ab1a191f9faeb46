// SPDX-License-Identifier: Apache-2.0
// Sockets that the agent of this host connects, when there is a first message for a rank of another
// host, or one of theirs has one for this rank.
#pragma once

#include <vector>

#include "transport/link/tcp/stream_link.hpp"

namespace sojourn::detail::tcp {

class agent_link final : public stream_link {
 public:
  /// `channel` leads to the agent (agent_channel.hpp), and is closed with this.
  explicit agent_link(int channel) : channel_(channel) {}
  ~agent_link() override;

  void begin(std::span<far_rank* const> ranks) override;
  void pump(bool thoroughly) override;

 private:
  void connect(int rank) override;
  void on_other() override;

  int channel_;
  std::vector<bool> is_wanted_;  ///< By rank: the agent has been asked, once for all.
};

}  // namespace sojourn::detail::tcp
