// SPDX-License-Identifier: Apache-2.0
// Makes the connections between ranks of this host and those of others, and passes each to its
// rank: when the rank asks for it, or when another host's agent calls for one of its ranks. Only
// connections whose other end has proved that it knows the job's secret are passed on; a stranger
// costs a place among a limited number, for a second.
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
#include "hosts/handshake.hpp"
#include "memory/address_map.hpp"

namespace sojourn::detail {

class switchboard {
 public:
  using clock = std::chrono::steady_clock;
  using time = clock::time_point;

  /// `here`: the ranks of this host, of `ranks` in all.
  switchboard(const job_secret& secret, ranks_of_host here, int ranks);
  ~switchboard();
  switchboard(const switchboard&) = delete;
  switchboard& operator=(const switchboard&) = delete;

  /// Where the agents of other hosts call.
  int port() const { return listens_.port; }
  /// A rank's end of its channel (transport/link/tcp/agent_channel.hpp), for the rank to inherit.
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
  /// Somebody has called, and has still to prove who it is.
  struct caller {
    caller(const job_secret& secret, int s, time now) : proves(secret), socket(s), until(now) {}
    accepting proves;
    int socket;
    time until;
    std::optional<pair> of = std::nullopt;
  };
  struct call {
    std::optional<asking> proves;
    int socket = -1;
    bool is_connected = false;
    time again = time::max();  ///< When to try again; `socket` is -1 until then.
    std::optional<time> fails_since = std::nullopt;
  };
  /// Whoever waits in the epoll set: by the number that its events have.
  enum class source : std::uint32_t { listener, channel, caller, call };

  channel& at(int rank) { return channels_[static_cast<std::size_t>(rank - here_.first)]; }
  const channel& at(int rank) const {
    return channels_[static_cast<std::size_t>(rank - here_.first)];
  }
  bool is_here(int rank) const { return rank >= here_.first && rank < here_.first + here_.count; }
  void watch(int socket, source what, std::uint32_t number, std::uint32_t events, bool again);
  void accept_callers(time now);
  void hear(int rank, time now);
  void wants(pair p, time now);
  void begin(pair p, call& c, time now);
  void go_on(pair p, time now);
  void fails(pair p, call& c, const std::string& why, time now);
  void go_on(std::uint32_t number, time now);
  void hang_up(std::uint32_t number, time now);
  bool may_call(const hello& said, pair& of) const;
  void pass(pair p, int socket);
  void pass_on();

  static constexpr std::size_t callers_most = 256;
  static constexpr int callers_a_turn = 64;

  job_secret secret_;
  ranks_of_host here_;
  int ranks_;
  int epoll_;
  listener listens_;
  std::vector<channel> channels_;
  std::vector<address> addresses_;
  std::map<std::uint32_t, caller> callers_;
  std::uint32_t next_caller_ = 0;
  std::map<pair, call> calls_;
  std::map<pair, int> awaited_;  ///< A caller for this pair is proving who it is.
  std::map<pair, bool> wanted_;  ///< The rank has asked, and has none yet.
  std::map<pair, int> passed_;   ///< Kept open: a rank that ends must not cut off what it sent.
  std::vector<std::pair<pair, int>> unpassed_;  ///< The rank's channel is full.
  std::vector<trouble> troubles_;
};

}  // namespace sojourn::detail
