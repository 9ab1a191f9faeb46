// SPDX-License-Identifier: Apache-2.0
// Makes the connections between ranks of this host and those of others, and passes each to its
// rank: when the rank asks for it, or when another host's agent calls for one of its ranks and has
// proved that it knows the job's secret.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hosts/addresses.hpp"
#include "hosts/doorkeeper.hpp"
#include "hosts/handshake.hpp"
#include "memory/address_map.hpp"
#include "transport/link/socket_link.hpp"

namespace sojourn::detail {

class switchboard final : private doorkeeper::household {
 public:
  using clock = std::chrono::steady_clock;
  using time = clock::time_point;

  /// `here`: the ranks of this host, of `ranks` in all. `seals`: what they send to those of other
  /// hosts is encrypted; the same on all hosts.
  switchboard(const job_secret& secret, ranks_of_host here, int ranks, bool seals);
  ~switchboard() override;
  switchboard(const switchboard&) = delete;
  switchboard& operator=(const switchboard&) = delete;

  /// Where the agents of other hosts call.
  int port() const { return door_.port(); }
  /// A rank's end of its channel (transport/link/agent_channel.hpp), for the rank to inherit.
  int channel_of(int rank) const { return at(rank).of_rank; }
  /// The ranks have been started: they have their ends.
  void close_ends_of_ranks();

  /// Where the agent of each rank's host listens. Until this is known, no rank asks.
  void learn(std::vector<address> of_ranks) { addresses_ = std::move(of_ranks); }

  /// Readable when serve() has something to do.
  int descriptor() const { return epoll_; }
  std::optional<time> next_deadline() const;
  void serve();

  /// A rank of this host, one of another, and why there is no connection between them.
  struct trouble {
    int here;
    int there;
    bool is_broken;  ///< It has been one.
    std::string why;
    time since;
  };
  /// What has gone wrong since the last call.
  std::vector<trouble> take_troubles() { return std::exchange(troubles_, {}); }

  /// Descriptors that may be open here, at most.
  static rlim_t files_needed(ranks_of_host here, int ranks);

 private:
  struct channel {
    int of_agent = -1;
    int of_rank = -1;
  };
  /// From a rank here to one of another host.
  struct pair {
    int here;
    int there;
    friend auto operator<=>(const pair&, const pair&) = default;
  };
  struct call {
    std::optional<asking> proves;
    int socket = -1;
    bool is_connected = false;
    time again = time::max();  ///< When to try again; `socket` is -1 until then.
    std::optional<time> fails_since = std::nullopt;
  };
  /// Whoever waits in the epoll set: by the number that its events have.
  enum class source : std::uint32_t { door, channel, call };

  channel& at(int rank) { return channels_[static_cast<std::size_t>(rank - here_.first)]; }
  const channel& at(int rank) const {
    return channels_[static_cast<std::size_t>(rank - here_.first)];
  }
  bool is_here(int rank) const { return rank >= here_.first && rank < here_.first + here_.count; }
  void watch(int socket, source what, std::uint32_t number, std::uint32_t events, bool again);
  void hear(int rank, time now);
  void wants(pair p, time now);
  void begin(pair p, call& c, time now);
  void go_on(pair p, time now);
  void fails(pair p, call& c, const std::string& why, time now);
  bool may_come(const hello& said) override;
  void has_come(const hello& said, int socket, const seal_keys& keys) override;
  void has_gone(const hello& said) override;
  static pair pair_of(const hello& said) {
    return {static_cast<int>(said.to), static_cast<int>(said.from)};
  }
  void no_longer_awaited(pair p);
  void pass(pair p, int socket, const seal_keys& keys);
  void pass_on();

  job_secret secret_;
  ranks_of_host here_;
  int ranks_;
  bool seals_;
  int epoll_;
  doorkeeper door_;
  std::vector<channel> channels_;
  std::vector<address> addresses_;
  std::map<pair, call> calls_;
  std::map<pair, int> awaited_;  ///< A caller for this pair is proving who it is.
  std::map<pair, bool> wanted_;  ///< The rank has asked, and has none yet.
  std::map<pair, int> passed_;   ///< Kept open: a rank that ends must not cut off what it sent.
  std::vector<std::pair<pair, connection>> unpassed_;  ///< The rank's channel is full.
  std::vector<trouble> troubles_;
};

}  // namespace sojourn::detail
