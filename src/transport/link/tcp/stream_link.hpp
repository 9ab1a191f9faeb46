// SPDX-License-Identifier: Apache-2.0
// A link over connected sockets, one for each far rank.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "transport/link/socket_link.hpp"
#include "transport/link/tcp/stream.hpp"

namespace sojourn::detail::tcp {

class stream_link final : public socket_link {
 public:
  explicit stream_link(std::unique_ptr<socket_source> source = nullptr)
      : socket_link(std::move(source)) {}

  void connected(int rank, const connection& made) override;

  void begin(std::span<far_rank* const> ranks) override;
  void push(int rank) override;
  void pump(bool thoroughly) override;
  void enter_handler(interrupted what) override { handler_in_ = what; }
  bool has_unsent(int rank) override;
  // Bytes that have not been received yet keep the descriptor readable.
  bool arm() override { return !some_are_unpushed_; }
  void lose(int rank) override;

 private:
  struct peer {
    far_rank* rank = nullptr;
    std::unique_ptr<stream> connection;
    bool awaits_room = false;  ///< epoll tells when the socket takes more.
    bool is_broken = false;    ///< The next thorough pump ends the connection.
    bool is_unpushed = false;  ///< A handler has left a push() for later.
  };
  peer& at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  void watch_socket(int rank, bool for_room, bool again);
  void heard(std::uint32_t number, std::uint32_t events) override;
  void receive(int rank);
  void spoke(int rank);
  void close(int rank);
  void end_broken();

  std::pmr::vector<peer> peers_{runtime_resource()};
  /// A handler that has interrupted a library, which may be libcrypto, cannot encrypt.
  bool is_left_for_later(const peer& p) const {
    return handler_in_ == interrupted::library && p.connection != nullptr &&
           p.connection->is_sealed();
  }
  void push_unpushed();

  bool some_are_broken_ = false;
  bool some_are_unpushed_ = false;
  interrupted handler_in_ = interrupted::nothing;
  int last_speakers_[2] = {none, none};
  static constexpr int none = -1;
};

}  // namespace sojourn::detail::tcp
