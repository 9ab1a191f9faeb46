// SPDX-License-Identifier: Apache-2.0
#include "transport/link/tcp/stream.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/owned_descriptors.hpp"

namespace sojourn::detail::tcp {

namespace {

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

stream::stream(const connection& to)
    : socket_(to.socket), out_(runtime_resource(), out_bytes), in_(runtime_resource(), in_bytes) {
  if (to.keys) sealed_.emplace(to.socket, *to.keys, runtime_resource());
}

stream::~stream() { close_owned(socket_); }

/// Keeps only the first reason.
bool stream::broken(const char* why) {
  if (why_[0] == 0) std::snprintf(why_, sizeof why_, "%s", why);
  return false;
}

bool stream::broken(int reason) {
  return broken(reason == EBADMSG ? "what came over it was not what the other rank has sent"
                                  : std::strerror(reason));
}

// --- Sending

/// Fills the buffer. If there is a message that is not copied, the buffer ends behind its head.
void stream::gather(far_rank& to) {
  if (!payload_left_.empty()) return;
  if (out_at_ == out_end_) out_at_ = out_end_ = 0;
  far_rank::outgoing f;
  while (out_bytes - out_end_ >= sizeof(far_frame) && to.next(f)) {
    const bool in_place = f.payload.size() >= in_place_from;
    if (!in_place && out_bytes - out_end_ < sizeof(far_frame) + f.payload.size()) return;
    std::memcpy(out_.get() + out_end_, &f.head, sizeof(far_frame));
    out_end_ += sizeof(far_frame);
    if (in_place) {
      payload_left_ = f.payload;
      return;
    }
    if (!f.payload.empty()) std::memcpy(out_.get() + out_end_, f.payload.data(), f.payload.size());
    out_end_ += f.payload.size();
    to.sent();
  }
}

/// Returns false when the socket takes no more for now, or is broken.
bool stream::write_some(far_rank& to) {
  iovec parts[2] = {
      {out_.get() + out_at_, out_end_ - out_at_},
      {const_cast<std::byte*>(payload_left_.data()), payload_left_.size()},
  };
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = payload_left_.empty() ? 1 : 2;
  // A call without a list of parts costs the kernel less when there is only one part.
  const ssize_t n =
      sealed_ ? sealed_->send({parts, message.msg_iovlen})
      : payload_left_.empty()
          ? ::send(socket_, parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL)
          : sendmsg(socket_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0) {
    if (would_block()) return false;
    takes_no_more_ = true;
    out_at_ = out_end_ = 0;
    payload_left_ = {};
    return broken(errno);
  }
  const auto done = static_cast<std::size_t>(n);
  const std::size_t of_buffer = std::min(done, out_end_ - out_at_);
  out_at_ += of_buffer;
  if (payload_left_.empty()) return true;
  payload_left_ = payload_left_.subspan(done - of_buffer);
  if (payload_left_.empty()) to.sent();
  return true;
}

void stream::send(far_rank& to) {
  while (!takes_no_more_) {
    gather(to);
    if (!has_unsent() || !write_some(to)) return;
  }
}

// --- Receiving

/// Takes the head of a frame, which is in the buffer.
bool stream::take_head(far_rank& from) {
  far_frame head;
  std::memcpy(&head, in_.get() + in_at_, sizeof head);
  in_at_ += sizeof head;
  const far_rank::incoming to = from.begin(head);
  if (to.why != nullptr) return broken(to.why);
  if (!to.is_message) return true;
  is_coming_ = true;
  room_left_ = {to.room, head.bytes};
  return true;
}

/// Takes all frames out of the buffer, also incomplete ones whose head is there.
bool stream::take_frames(far_rank& from) {
  for (;;) {
    if (is_coming_) {
      const std::size_t n = std::min(room_left_.size(), in_end_ - in_at_);
      if (n != 0) std::memcpy(room_left_.data(), in_.get() + in_at_, n);
      in_at_ += n;
      room_left_ = room_left_.subspan(n);
      if (!room_left_.empty()) break;
      is_coming_ = false;
      from.arrived();
    }
    if (in_end_ - in_at_ < sizeof(far_frame)) break;
    if (!take_head(from)) return false;
  }
  // What is left is a part of a head.
  if (in_at_ != 0) std::memmove(in_.get(), in_.get() + in_at_, in_end_ - in_at_);
  in_end_ -= in_at_;
  in_at_ = 0;
  return true;
}

bool stream::receive(far_rank& from, bool& moved) {
  // Takes all data that were decrypted: the socket would not wake this rank for them later.
  for (std::size_t taken = 0; taken < turn_bytes || (sealed_ && sealed_->has_received());) {
    // First the missing part of the message that is coming, which is received where it belongs.
    // Behind a long message, takes little more than the next head, so that the payload of the next
    // message can be received in place, too.
    const std::size_t behind = std::min(
        in_bytes - in_end_, room_left_.size() < in_place_from ? in_bytes : behind_long_bytes);
    iovec parts[2] = {{room_left_.data(), room_left_.size()}, {in_.get() + in_end_, behind}};
    iovec* const first = room_left_.empty() ? parts + 1 : parts;
    const std::size_t asked = room_left_.size() + behind;
    msghdr message{};
    message.msg_iov = first;
    message.msg_iovlen = static_cast<std::size_t>(parts + 2 - first);
    const ssize_t n = sealed_ ? sealed_->receive({first, message.msg_iovlen})
                      : room_left_.empty()
                          ? recv(socket_, parts[1].iov_base, parts[1].iov_len, MSG_DONTWAIT)
                          : recvmsg(socket_, &message, MSG_DONTWAIT);
    if (n == 0) return broken("the connection was closed");
    if (n < 0) return would_block() || broken(errno);
    moved = true;
    const auto came = static_cast<std::size_t>(n);
    taken += came;
    const std::size_t in_place = std::min(came, room_left_.size());
    room_left_ = room_left_.subspan(in_place);
    in_end_ += came - in_place;
    if (!take_frames(from)) return false;
    // No more had come. But behind data that could be decrypted there may be data that cannot be.
    if (came < asked && (!sealed_ || !sealed_->has_received())) return true;
  }
  return true;
}

}  // namespace sojourn::detail::tcp
