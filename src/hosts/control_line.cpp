// SPDX-License-Identifier: Apache-2.0
#include "hosts/control_line.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace sojourn::detail {

namespace {

struct head_of_message {
  std::uint32_t bytes;  ///< Of the fields, which follow.
  control kind;
};

// The longest: what 1,024 ranks have counted.
constexpr std::uint32_t longest = 64u << 20;
constexpr std::size_t at_once = 64u << 10;

}  // namespace

control_line::control_line(int socket, const seal_keys& keys)
    : socket_(socket), sealed_(socket, keys) {}

control_line::~control_line() { close(socket_); }

/// The first reason is the one to tell.
void control_line::end(std::string why) {
  if (std::exchange(has_ended_, true)) return;
  why_ = std::move(why);
  out_.clear();
  out_at_ = 0;
}

void control_line::send(control kind, const record_writer& fields) {
  if (has_ended_) return;
  const head_of_message head{static_cast<std::uint32_t>(fields.bytes().size()), kind};
  out_.append(reinterpret_cast<const char*>(&head), sizeof head);
  out_.append(fields.bytes());
  write_some();
}

void control_line::write_some() {
  while (has_unsent()) {
    const iovec rest{out_.data() + out_at_, out_.size() - out_at_};
    const ssize_t n = sealed_.send({&rest, 1});
    if (n < 0) {
      if (errno == EAGAIN) return;
      // That it is broken is told once what has come before is read.
      cannot_send_ = true;
      break;
    }
    out_at_ += static_cast<std::size_t>(n);
  }
  out_.clear();
  out_at_ = 0;
}

void control_line::read_some() {
  if (in_at_ != 0) in_.erase(0, std::exchange(in_at_, 0));
  for (;;) {
    const std::size_t have = in_.size();
    in_.resize(have + at_once);
    const iovec room{in_.data() + have, at_once};
    const ssize_t n = sealed_.receive({&room, 1});
    in_.resize(have + static_cast<std::size_t>(n > 0 ? n : 0));
    if (n == 0) return end("it was closed");
    if (n > 0) continue;
    if (errno == EBADMSG) return end("what came over it was not what the other end has sent");
    if (errno != EAGAIN) end(std::strerror(errno));
    return;
  }
}

bool control_line::move() {
  if (has_ended_) return false;
  write_some();
  read_some();
  return !has_ended_;
}

std::optional<control_line::message> control_line::next() {
  head_of_message head;
  if (in_.size() - in_at_ < sizeof head) return std::nullopt;
  std::memcpy(&head, in_.data() + in_at_, sizeof head);
  if (head.bytes > longest) {
    end("what came over it is no message");
    return std::nullopt;
  }
  if (in_.size() - in_at_ - sizeof head < head.bytes) return std::nullopt;
  message m{head.kind, in_.substr(in_at_ + sizeof head, head.bytes)};
  in_at_ += sizeof head + head.bytes;
  return m;
}

}  // namespace sojourn::detail
