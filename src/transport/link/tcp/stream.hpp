// SPDX-License-Identifier: Apache-2.0
// Frames over one connected socket, in both directions. The socket does not block. Short messages
// are gathered in a buffer, so that many leave with one system call; the bytes of long ones are
// read and written where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "transport/far/far_rank.hpp"
#include "transport/link/socket_link.hpp"

namespace sojourn::detail::tcp {

class stream : public in_runtime_memory {
 public:
  /// Takes over the socket.
  explicit stream(const connection& to);
  ~stream();
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  /// Sends frames of this rank until there are none or the socket takes no more. If the socket will
  /// never take more, receive() says so, after it has taken in what the other end sent before.
  void send(far_rank& to);
  /// True when frames of this rank, or parts of them, wait until the socket takes more.
  bool has_unsent() const {
    return out_at_ != out_end_ || !payload_left_.empty() ||
           (sealed_ && !takes_no_more_ && sealed_->has_unsent());
  }

  /// Takes in what has come, until there is no more, or enough for a turn. Returns false when the
  /// connection is broken. `moved`: becomes true when anything had come.
  bool receive(far_rank& from, bool& moved);

  int socket() const { return socket_; }
  bool is_sealed() const { return sealed_.has_value(); }
  /// Why receive() returned false: for people.
  const char* why() const { return why_; }

 private:
  void gather(far_rank& to);
  bool write_some(far_rank& to);
  bool take_frames(far_rank& from);
  bool take_head(far_rank& from);
  bool broken(int reason);
  bool broken(const char* why);

  static constexpr std::size_t out_bytes = 64 << 10;
  static constexpr std::size_t in_bytes = 256 << 10;
  /// Messages from this length on are not copied into the buffer.
  static constexpr std::size_t in_place_from = 8 << 10;
  /// How much of what comes behind such a message is taken into the buffer.
  static constexpr std::size_t behind_long_bytes = 4 << 10;
  /// How much is taken in before other ranks have their turn.
  static constexpr std::size_t turn_bytes = 1 << 20;

  int socket_;
  std::optional<sealed_socket> sealed_;  ///< None when nothing is encrypted.
  plain_bytes out_;
  std::size_t out_at_ = 0;
  std::size_t out_end_ = 0;
  std::span<const std::byte>
      payload_left_;  ///< The rest of the payload of the frame whose head ends the buffer.

  plain_bytes in_;
  std::size_t in_at_ = 0;
  std::size_t in_end_ = 0;
  std::span<std::byte> room_left_;  ///< Where the rest of the message belongs that is coming.
  bool is_coming_ = false;
  bool takes_no_more_ = false;
  char why_[96] = "";
};

}  // namespace sojourn::detail::tcp
