// SPDX-License-Identifier: Apache-2.0
#include "hosts/handshake.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <span>

namespace sojourn::detail {

namespace {

constexpr char welcome_byte = 'w';

/// Reads what is lacking, and no byte more. errno is 0 after the end of the stream.
progress read_rest(int socket, std::span<std::byte> to, std::size_t& have) {
  while (have < to.size()) {
    const ssize_t n = recv(socket, to.data() + have, to.size() - have, MSG_DONTWAIT);
    if (n > 0) {
      have += static_cast<std::size_t>(n);
    } else if (n == 0) {
      errno = 0;
      return progress::refused;
    } else if (errno == EAGAIN) {
      return progress::waits;
    } else if (errno != EINTR) {
      return progress::refused;
    }
  }
  return progress::done;
}

/// A new connection has room for the few bytes that are said here. One that takes only a part of
/// them is not what it should be, and is given up rather than waited for.
bool write_all(int socket, std::span<const std::byte> bytes) {
  ssize_t n;
  do {
    n = send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n >= 0) errno = EAGAIN;
  return n == static_cast<ssize_t>(bytes.size());
}

template <class T>
std::span<const std::byte> bytes_of(const T& what) {
  return std::as_bytes(std::span(&what, 1));
}

template <class T>
std::span<std::byte> room_of(T& what) {
  return std::as_writable_bytes(std::span(&what, 1));
}

/// `side`: 's' for who accepts, 'c' for who asks; in capitals, for the key of what that side sends.
proof prove_as(char side, const job_secret& secret, const hello& said, const nonce& fresh) {
  std::array<std::byte, 1 + sizeof said + sizeof fresh> text;
  text[0] = static_cast<std::byte>(side);
  std::memcpy(text.data() + 1, &said, sizeof said);
  std::memcpy(text.data() + 1 + sizeof said, fresh.data(), sizeof fresh);
  return prove(secret, text);
}

bool is_in_order(const hello& h) {
  return h.magic == hello::right_magic && h.version == hello::right_version &&
         (h.what_for == purpose::agent || h.what_for == purpose::ranks);
}

}  // namespace

// --- The accepting side

progress accepting::end_with(progress result) {
  at_ = result == progress::done ? step::done : step::refused;
  return result;
}

progress accepting::go_on(int socket) {
  switch (at_) {
    case step::hello: {
      const progress came = read_rest(socket, room_of(hello_), have_);
      if (came == progress::waits) return came;
      if (came == progress::refused || !is_in_order(hello_)) return end_with(progress::refused);
      is_hello_here_ = true;
      at_ = step::challenge;
      return progress::hello_came;
    }
    case step::challenge: {
      fresh_ = new_nonce();
      const challenge ours{fresh_, prove_as('s', secret_, hello_, fresh_)};
      if (!write_all(socket, bytes_of(ours))) return end_with(progress::refused);
      have_ = 0;
      at_ = step::answer;
      [[fallthrough]];
    }
    case step::answer: {
      const progress came = read_rest(socket, room_of(answer_), have_);
      if (came == progress::waits) return came;
      const bool is_welcome = came == progress::done &&
                              same(answer_, prove_as('c', secret_, hello_, fresh_)) &&
                              write_all(socket, bytes_of(welcome_byte));
      return end_with(is_welcome ? progress::done : progress::refused);
    }
    case step::done:
      return progress::done;
    case step::refused:
      return progress::refused;
  }
  return progress::refused;
}

seal_keys accepting::keys() const {
  return {prove_as('S', secret_, hello_, fresh_), prove_as('C', secret_, hello_, fresh_)};
}

// --- The asking side

asking::asking(const job_secret& secret, purpose what_for, std::uint32_t from, std::uint32_t to)
    : secret_(secret) {
  hello_.what_for = what_for;
  hello_.from = from;
  hello_.to = to;
  hello_.fresh = new_nonce();
}

seal_keys asking::keys() const {
  const nonce& fresh = challenge_.fresh;
  return {prove_as('C', secret_, hello_, fresh), prove_as('S', secret_, hello_, fresh)};
}

progress asking::refuse(const char* why) {
  at_ = step::refused;
  why_ = why;
  return progress::refused;
}

/// The socket has failed, as errno says, or was closed.
progress asking::broken(const char* why_closed) {
  // Who closes a connection without reading all that has come resets it.
  const bool was_closed = errno == 0 || errno == ECONNRESET || errno == EPIPE;
  const char* const why = was_closed ? why_closed : strerrordesc_np(errno);
  return refuse(why != nullptr ? why : "the connection has failed");
}

progress asking::go_on(int socket) {
  switch (at_) {
    case step::hello:
      if (!write_all(socket, bytes_of(hello_))) return broken("the other side closed at once");
      at_ = step::challenge;
      [[fallthrough]];
    case step::challenge: {
      const progress came = read_rest(socket, room_of(challenge_), have_);
      if (came == progress::waits) return came;
      if (came == progress::refused) {
        return broken(
            "the other side refused to talk: it is not of this job, or of another version of "
            "Sojourn");
      }
      if (!same(challenge_.known, prove_as('s', secret_, hello_, challenge_.fresh))) {
        met_stranger_ = true;
        return refuse("what listens there does not know the job's secret");
      }
      const proof answer = prove_as('c', secret_, hello_, challenge_.fresh);
      if (!write_all(socket, bytes_of(answer))) {
        return broken("the other side closed before it had the answer to its challenge");
      }
      have_ = 0;
      at_ = step::welcome;
      [[fallthrough]];
    }
    case step::welcome: {
      const progress came = read_rest(socket, room_of(welcome_), have_);
      if (came == progress::waits) return came;
      if (came == progress::refused) {
        return broken("the other side does not believe that this one knows the job's secret");
      }
      if (welcome_ != welcome_byte) {
        return refuse("the other side did not say what follows an answer that is right");
      }
      at_ = step::done;
      return progress::done;
    }
    case step::done:
      return progress::done;
    case step::refused:
      return progress::refused;
  }
  return progress::refused;
}

// --- What holds for as long as the connection does

namespace {

/// What fails is not TCP, or an older kernel: the connection works without.
void set(int socket, int level, int option, int value) {
  (void)setsockopt(socket, level, option, &value, sizeof value);
}

}  // namespace

void make_ready_for_ranks(int socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

void keep_watch_of(int socket) {
  // It takes both. The kernel probes no connection that has data on their way, so probes alone
  // never noticed a cut while something was being sent; and the limit of time counts nothing but
  // data and probes, so alone it never noticed one while the connection was idle. With both, a cut
  // was noticed in 1.7 to 1.9 s in either state.
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 1);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 1500);
}

}  // namespace sojourn::detail
