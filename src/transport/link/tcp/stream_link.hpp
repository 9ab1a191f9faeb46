// SPDX-License-Identifier: Apache-2.0
// A link over connected sockets, one for each far rank.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/link/link.hpp"
#include "transport/link/tcp/stream.hpp"

namespace sojourn::detail::tcp {

class stream_link : public link {
 public:
  stream_link();
  ~stream_link() override;

  /// Takes over a socket that is connected to this rank. Requires: begin() has been called.
  void connected(int rank, int socket);

  void begin(std::span<far_rank* const> ranks) override;
  void push(int rank) override;
  void pump(bool thoroughly) override;
  bool has_unsent(int rank) override;
  int descriptor() const override { return epoll_; }
  bool arm() override { return true; }  // what has not been looked at keeps the descriptor readable
  int next_broken(const char*& why) override;
  void lose(int rank) override;

 protected:
  /// There is something to send to a rank that is not connected: called at each push.
  virtual void connect(int) {}
  /// A thorough pump also calls on_other() when `descriptor` is readable.
  void watch_also(int descriptor);
  virtual void on_other() {}

 private:
  static constexpr std::uint32_t other = ~std::uint32_t{0};

  struct peer {
    far_rank* rank = nullptr;
    std::unique_ptr<stream> connection;
    bool awaits_room = false;  ///< epoll tells when the socket takes more.
    bool is_broken = false;    ///< Its end is met by the next thorough pump.
  };
  peer& at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  void watch(int rank, int operation, bool for_room);
  void receive(int rank);
  void spoke(int rank);
  void close(int rank);
  void breaks(int rank);
  void end_broken();

  int epoll_;
  std::vector<peer> peers_;
  bool some_are_broken_ = false;
  int last_speakers_[2] = {none, none};
  static constexpr int none = -1;
  struct broken {
    int rank;
    std::string why;
  };
  std::deque<broken> broken_;
  std::string told_why_;  ///< Of the rank that next_broken() named last.
};

}  // namespace sojourn::detail::tcp
