// SPDX-License-Identifier: Apache-2.0
// A link over sockets that are connected to the ranks. Other code makes the connections, and has
// made sure that the right rank is at the other end.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/link/link.hpp"
#include "transport/link/sealed_socket.hpp"

namespace sojourn::detail {

/// A socket that is connected to a rank, and the keys if the connection is encrypted.
struct connection {
  int socket = -1;
  std::optional<seal_keys> keys = {};
};

/// Makes the connections.
class socket_source : public in_runtime_memory {
 public:
  virtual ~socket_source() = default;
  /// There is a message for this rank, but no connection yet.
  virtual void want(int rank) = 0;
  /// Readable when take() has something.
  virtual int descriptor() const = 0;
  /// Gives a connection to `rank`, which this or that rank has wanted. Returns false when there is
  /// none now.
  virtual bool take(int& rank, connection& made) = 0;
  /// The connection to this rank has ended: `why`, for people.
  virtual void tell_broken(int rank, const char* why) = 0;
};

class socket_link : public link {
 public:
  /// `source`: null when the owner of the link calls connected() and next_broken() itself.
  explicit socket_link(std::unique_ptr<socket_source> source);
  ~socket_link() override;

  /// Takes over a connection to this rank. Requires: begin() has been called.
  virtual void connected(int rank, const connection& made) = 0;

  void begin(std::span<far_rank* const> ranks) override;
  int descriptor() const override { return epoll_; }
  int next_broken(const char*& why) override;

 protected:
  /// There is something to send to a rank that is not connected: asks for a connection, but only
  /// once.
  void want(int rank);
  /// To be called by a thorough pump: calls heard() for each descriptor that is ready, and takes
  /// connections that have been made.
  void serve_sockets();
  /// Called for a descriptor that is watched under this number. `events` as of epoll_wait(2).
  virtual void heard(std::uint32_t number, std::uint32_t events) = 0;
  void watch(int descriptor, std::uint32_t number, std::uint32_t events, bool again = false);
  void unwatch(int descriptor);
  /// The connection to this rank has ended, and its socket is closed.
  void note_broken(int rank, std::string why) { broken_.push_back({rank, std::move(why)}); }
  /// The last thing that a thorough pump does: tells the source of connections that have ended.
  void tell_broken();

 private:
  static constexpr std::uint32_t source_number = ~std::uint32_t{0};
  void take_connections();

  std::unique_ptr<socket_source> source_;
  int epoll_;
  std::pmr::vector<bool> is_wanted_ = std::pmr::vector<bool>(
      runtime_resource());  ///< By rank: whether a connection has been asked for.
  struct broken {
    int rank;
    std::string why;
  };
  std::pmr::deque<broken> broken_{runtime_resource()};
  std::string told_why_;  ///< Why the connection ended to the rank that next_broken() named last.
};

}  // namespace sojourn::detail
