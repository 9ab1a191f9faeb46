// SPDX-License-Identifier: Apache-2.0
#include "hosts/handshake.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <string_view>

namespace sojourn::detail {

void PrintTo(progress p, std::ostream* out) {
  constexpr const char* names[] = {"waits", "hello_came", "done", "refused"};
  *out << names[static_cast<std::size_t>(p)];
}

}  // namespace sojourn::detail

namespace {

using namespace sojourn::detail;

job_secret secret_of(unsigned char first) {
  job_secret secret{};
  for (std::size_t i = 0; i < secret.size(); ++i) {
    secret[i] = static_cast<unsigned char>(first + 7 * i);
  }
  return secret;
}

const job_secret right = secret_of(1);
const job_secret wrong = secret_of(2);

/// A connected pair of sockets that do not block.
struct connection {
  int asker = -1;
  int acceptor = -1;

  connection() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    asker = ends[0];
    acceptor = ends[1];
  }
  ~connection() {
    close_end(asker);
    close_end(acceptor);
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

void put(int socket, std::string_view bytes) {
  ASSERT_EQ(send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

/// What has come, at most `room` bytes.
std::string take(int socket, std::size_t room = 4096) {
  std::string bytes(room, '\0');
  const ssize_t n = recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return bytes;
}

template <class T>
std::string bytes_of(const T& what) {
  std::string bytes(sizeof what, '\0');
  std::memcpy(bytes.data(), &what, sizeof what);
  return bytes;
}

template <class T>
T read_as(const std::string& bytes) {
  T what;
  EXPECT_EQ(bytes.size(), sizeof what);
  if (bytes.size() == sizeof what) std::memcpy(&what, bytes.data(), sizeof what);
  return what;
}

/// The proofs as the protocol has them, made by other code than that under test.
std::string proof_of(char side, const job_secret& secret, const std::string& said,
                     const nonce& fresh) {
  const std::string text = side + said + bytes_of(fresh);
  return bytes_of(prove(secret, std::as_bytes(std::span(text))));
}

std::string hello_bytes() {
  hello h;
  h.what_for = purpose::ranks;
  h.from = 3;
  h.to = 5;
  h.fresh = new_nonce();
  return bytes_of(h);
}

/// Until the acceptor waits or knows. The caller likes every hello.
progress go_on(accepting& side, int socket) {
  const progress p = side.go_on(socket);
  return p == progress::hello_came ? side.go_on(socket) : p;
}

struct handshake : testing::Test {
  void SetUp() override {
    if (const std::string why = why_no_proofs(); !why.empty()) GTEST_SKIP() << why;
  }

  connection with;
  asking asks{right, purpose::ranks, 3, 5};
  accepting accepts{right};

  /// Has a stranger say this hello; the challenge that it gets.
  std::optional<challenge> challenge_to(const std::string& said) {
    put(with.asker, said);
    EXPECT_EQ(accepts.go_on(with.acceptor), progress::hello_came);
    EXPECT_EQ(accepts.go_on(with.acceptor), progress::waits);
    return read_as<challenge>(take(with.asker));
  }

  /// Has the stranger answer; nothing may come back.
  void is_refused_after(const std::string& answer) {
    put(with.asker, answer);
    EXPECT_EQ(accepts.go_on(with.acceptor), progress::refused);
    EXPECT_EQ(accepts.go_on(with.acceptor), progress::refused);
    EXPECT_EQ(take(with.asker), "");
  }

  /// Has who listens say this, after the hello.
  progress after_challenge(const std::string& bytes) {
    EXPECT_EQ(asks.go_on(with.asker), progress::waits);
    put(with.acceptor, bytes);
    return asks.go_on(with.asker);
  }
};

TEST_F(handshake, succeeds_when_both_know_the_secret) {
  EXPECT_EQ(accepts.go_on(with.acceptor), progress::waits);
  EXPECT_FALSE(accepts.may_tell());
  EXPECT_EQ(asks.go_on(with.asker), progress::waits);
  EXPECT_EQ(accepts.go_on(with.acceptor), progress::hello_came);
  ASSERT_TRUE(accepts.may_tell());
  EXPECT_EQ(accepts.said().what_for, purpose::ranks);
  EXPECT_EQ(accepts.said().from, 3U);
  EXPECT_EQ(accepts.said().to, 5U);
  EXPECT_EQ(asks.go_on(with.asker), progress::waits);  // there is no challenge yet
  EXPECT_EQ(accepts.go_on(with.acceptor), progress::waits);
  EXPECT_EQ(asks.go_on(with.asker), progress::waits);
  EXPECT_EQ(accepts.go_on(with.acceptor), progress::done);
  EXPECT_EQ(asks.go_on(with.asker), progress::done);
  EXPECT_EQ(accepts.go_on(with.acceptor), progress::done);
  EXPECT_EQ(asks.go_on(with.asker), progress::done);
  EXPECT_STREQ(asks.why(), "");
  EXPECT_EQ(take(with.asker), "");
  EXPECT_EQ(take(with.acceptor), "");
  EXPECT_EQ(asks.keys().out, accepts.keys().in);
  EXPECT_EQ(asks.keys().in, accepts.keys().out);
  EXPECT_NE(asks.keys().in, asks.keys().out);
}

TEST_F(handshake, proves_what_the_protocol_says) {
  ASSERT_EQ(asks.go_on(with.asker), progress::waits);
  const std::string said = take(with.acceptor);
  const hello h = read_as<hello>(said);
  EXPECT_EQ(said.substr(0, 8), "SJOURN01");
  EXPECT_EQ(h.what_for, purpose::ranks);
  challenge c;
  c.fresh = new_nonce();
  put(with.acceptor, bytes_of(c.fresh) + proof_of('s', right, said, c.fresh));
  ASSERT_EQ(asks.go_on(with.asker), progress::waits);
  EXPECT_EQ(take(with.acceptor), proof_of('c', right, said, c.fresh));
  put(with.acceptor, "w");
  EXPECT_EQ(asks.go_on(with.asker), progress::done);
}

TEST_F(handshake, ends_with_a_reason_when_the_caller_does_not_like_the_hello) {
  ASSERT_EQ(asks.go_on(with.asker), progress::waits);
  ASSERT_EQ(accepts.go_on(with.acceptor), progress::hello_came);
  connection::close_end(with.acceptor);
  EXPECT_EQ(asks.go_on(with.asker), progress::refused);
  EXPECT_EQ(asks.go_on(with.asker), progress::refused);
  EXPECT_NE(std::string(asks.why()).find("refused to talk"), std::string::npos) << asks.why();
}

TEST_F(handshake, fails_for_who_asks_with_another_secret) {
  const std::string said = hello_bytes();
  const auto c = challenge_to(said);
  is_refused_after(proof_of('c', wrong, said, c->fresh));
}

TEST_F(handshake, fails_for_who_accepts_with_another_secret) {
  accepting stranger(wrong);
  ASSERT_EQ(asks.go_on(with.asker), progress::waits);
  ASSERT_EQ(go_on(stranger, with.acceptor), progress::waits);
  EXPECT_EQ(asks.go_on(with.asker), progress::refused);
  EXPECT_NE(std::string(asks.why()).find("does not know"), std::string::npos) << asks.why();
  EXPECT_EQ(take(with.acceptor), "");  // who asks gives no proof to who has given none
  connection::close_end(with.asker);
  EXPECT_EQ(go_on(stranger, with.acceptor), progress::refused);
}

TEST_F(handshake, fails_for_an_answer_that_was_right_before) {
  const std::string said = hello_bytes();
  std::string recorded;
  {
    connection before;
    accepting first(right);
    put(before.asker, said);
    ASSERT_EQ(go_on(first, before.acceptor), progress::waits);
    recorded = proof_of('c', right, said, read_as<challenge>(take(before.asker)).fresh);
    put(before.asker, recorded);
    ASSERT_EQ(first.go_on(before.acceptor), progress::done);
  }
  challenge_to(said);
  is_refused_after(recorded);
}

TEST_F(handshake, fails_for_a_challenge_that_was_right_before) {
  std::string recorded;
  {
    connection before;
    asking first(right, purpose::ranks, 3, 5);
    ASSERT_EQ(first.go_on(before.asker), progress::waits);
    ASSERT_EQ(go_on(accepts, before.acceptor), progress::waits);
    recorded = take(before.asker);
    put(before.acceptor, recorded);
    ASSERT_EQ(first.go_on(before.asker), progress::waits);
  }
  EXPECT_EQ(after_challenge(recorded), progress::refused);
}

TEST_F(handshake, fails_for_who_sends_a_proof_back_to_its_maker) {
  const auto c = challenge_to(hello_bytes());
  is_refused_after(bytes_of(c->known));
}

TEST_F(handshake, fails_for_a_proof_of_another_hello) {
  std::string said = hello_bytes();
  const auto c = challenge_to(said);
  said[16] ^= 1;  // another purpose
  is_refused_after(proof_of('c', right, said, c->fresh));
}

TEST_F(handshake, fails_when_the_connection_ends_within_the_hello) {
  const std::string said = hello_bytes();
  for (std::size_t bytes = 0; bytes < said.size(); ++bytes) {
    connection short_one;
    accepting side(right);
    put(short_one.asker, said.substr(0, bytes));
    EXPECT_EQ(side.go_on(short_one.acceptor), progress::waits) << bytes;
    connection::close_end(short_one.asker);
    EXPECT_EQ(side.go_on(short_one.acceptor), progress::refused) << bytes;
    EXPECT_FALSE(side.may_tell());
  }
}

TEST_F(handshake, fails_when_the_connection_ends_within_the_answer) {
  const std::string said = hello_bytes();
  const auto c = challenge_to(said);
  put(with.asker, proof_of('c', right, said, c->fresh).substr(0, 31));
  EXPECT_EQ(accepts.go_on(with.acceptor), progress::waits);
  connection::close_end(with.asker);
  EXPECT_EQ(accepts.go_on(with.acceptor), progress::refused);
}

TEST_F(handshake, fails_for_a_hello_that_is_not_in_order) {
  const hello good = read_as<hello>(hello_bytes());
  hello other_order = good;
  other_order.magic = __builtin_bswap64(good.magic);
  hello other_version = good;
  other_version.version = 1;
  hello no_purpose = good;
  no_purpose.what_for = purpose{0};
  hello unknown_purpose = good;
  unknown_purpose.what_for = purpose{3};
  for (const hello& bad : {other_order, other_version, no_purpose, unknown_purpose}) {
    connection to;
    accepting side(right);
    put(to.asker, bytes_of(bad));
    EXPECT_EQ(side.go_on(to.acceptor), progress::refused);
    EXPECT_EQ(side.go_on(to.acceptor), progress::refused);
    EXPECT_FALSE(side.may_tell());
    EXPECT_EQ(take(to.asker), "");
  }
}

TEST_F(handshake, fails_without_a_signal_when_nobody_is_there) {
  connection::close_end(with.acceptor);
  EXPECT_EQ(asks.go_on(with.asker), progress::refused);
  EXPECT_STRNE(asks.why(), "");

  connection other;
  put(other.asker, hello_bytes());
  ASSERT_EQ(accepts.go_on(other.acceptor), progress::hello_came);
  connection::close_end(other.asker);
  EXPECT_EQ(accepts.go_on(other.acceptor), progress::refused);
}

TEST_F(handshake, fails_with_the_systems_reason_when_the_socket_fails) {
  connection::close_end(with.acceptor);
  EXPECT_EQ(asks.go_on(-1), progress::refused);
  EXPECT_STREQ(asks.why(), "Bad file descriptor");
  EXPECT_EQ(accepts.go_on(-1), progress::refused);
}

TEST_F(handshake, does_not_wait_for_a_socket_that_takes_no_more) {
  const std::string much(1 << 16, 'x');
  while (send(with.asker, much.data(), much.size(), MSG_DONTWAIT) > 0) continue;
  EXPECT_EQ(asks.go_on(with.asker), progress::refused);
  EXPECT_STRNE(asks.why(), "");

  connection other;
  put(other.asker, hello_bytes());
  ASSERT_EQ(accepts.go_on(other.acceptor), progress::hello_came);
  while (send(other.acceptor, much.data(), much.size(), MSG_DONTWAIT) > 0) continue;
  EXPECT_EQ(accepts.go_on(other.acceptor), progress::refused);
}

TEST_F(handshake, fails_when_the_welcome_does_not_come_or_is_another_byte) {
  for (const char* last : {"", "x"}) {
    connection to;
    asking side(right, purpose::agent, 1, 0);
    ASSERT_EQ(side.go_on(to.asker), progress::waits);
    const std::string said = take(to.acceptor);
    const nonce fresh = new_nonce();
    put(to.acceptor, bytes_of(fresh) + proof_of('s', right, said, fresh));
    ASSERT_EQ(side.go_on(to.asker), progress::waits);
    put(to.acceptor, last);
    connection::close_end(to.acceptor);
    EXPECT_EQ(side.go_on(to.asker), progress::refused);
    EXPECT_STRNE(side.why(), "");
  }
}

// --- Ways that bytes travel

/// Between the two sides, which hold one end each of two connections.
struct relayed : handshake {
  connection second;  ///< `with.asker` asks, `second.acceptor` accepts.

  progress step_of_asker() { return asks.go_on(with.asker); }
  progress step_of_acceptor() { return go_on(accepts, second.acceptor); }
};

TEST_F(relayed, succeeds_a_byte_at_a_time) {
  progress asker = step_of_asker();
  progress acceptor = step_of_acceptor();
  int moved = 0;
  for (bool moves = true; moves;) {
    moves = false;
    if (const std::string byte = take(with.acceptor, 1); !byte.empty()) {
      put(second.asker, byte);
      acceptor = step_of_acceptor();
      moves = true;
      ++moved;
    }
    if (const std::string byte = take(second.asker, 1); !byte.empty()) {
      put(with.acceptor, byte);
      asker = step_of_asker();
      moves = true;
      ++moved;
    }
  }
  EXPECT_EQ(asker, progress::done);
  EXPECT_EQ(acceptor, progress::done);
  EXPECT_EQ(moved, 40 + 48 + 32 + 1);
}

TEST_F(relayed, leaves_what_follows_the_handshake_in_the_socket) {
  ASSERT_EQ(step_of_asker(), progress::waits);
  put(second.asker, take(with.acceptor));
  ASSERT_EQ(step_of_acceptor(), progress::waits);
  put(with.acceptor, take(second.asker));
  ASSERT_EQ(step_of_asker(), progress::waits);
  put(second.asker, take(with.acceptor) + "frames of the asker");
  ASSERT_EQ(step_of_acceptor(), progress::done);
  EXPECT_EQ(step_of_acceptor(), progress::done);
  EXPECT_EQ(take(second.acceptor), "frames of the asker");
  put(with.acceptor, take(second.asker) + "frames of the acceptor");
  ASSERT_EQ(step_of_asker(), progress::done);
  EXPECT_EQ(step_of_asker(), progress::done);
  EXPECT_EQ(take(with.asker), "frames of the acceptor");
}

TEST_F(handshake, leaves_what_follows_the_hello_in_the_socket_for_a_caller_who_likes_it) {
  put(with.asker, hello_bytes() + "more");
  ASSERT_EQ(accepts.go_on(with.acceptor), progress::hello_came);
  EXPECT_EQ(take(with.acceptor), "more");
}

TEST_F(handshake, fails_when_any_bit_is_changed_on_the_way) {
  constexpr std::size_t of_asker = 40 + 32;
  constexpr std::size_t of_acceptor = 48;
  for (std::size_t bit = 0; bit < 8 * (of_asker + of_acceptor); ++bit) {
    connection first;
    connection second;
    asking asker(right, purpose::agent, 7, 0);
    accepting acceptor(right);
    // Each way's bytes are counted, so that one of them is found again.
    std::size_t from_asker = 0;
    std::size_t from_acceptor = of_asker;
    const auto pass_on = [bit](int from, int to, std::size_t& passed) {
      std::string bytes = take(from);
      if (bit / 8 >= passed && bit / 8 < passed + bytes.size()) {
        bytes[bit / 8 - passed] = static_cast<char>(bytes[bit / 8 - passed] ^ (1 << bit % 8));
      }
      passed += bytes.size();
      if (!bytes.empty()) put(to, bytes);
    };
    progress asked = progress::waits;
    progress accepted = progress::waits;
    for (int round = 0; round < 3; ++round) {
      asked = asker.go_on(first.asker);
      if (asked == progress::refused) break;
      pass_on(first.acceptor, second.asker, from_asker);
      accepted = go_on(acceptor, second.acceptor);
      if (accepted == progress::refused) break;
      pass_on(second.asker, first.acceptor, from_acceptor);
    }
    EXPECT_NE(accepted, progress::done) << bit;
    EXPECT_NE(asked, progress::done) << bit;
    EXPECT_TRUE(asked == progress::refused || accepted == progress::refused) << bit;
  }
}

// --- Strangers

/// Fixed, so that each run of the tests is the same; SOJOURN_TEST_SEED asks for other bytes.
std::mt19937::result_type seed() {
  const char* set = std::getenv("SOJOURN_TEST_SEED");
  return set == nullptr ? 20260
                        : static_cast<std::mt19937::result_type>(std::strtoull(set, nullptr, 10));
}

/// The soak has more.
int inputs() {
  const char* set = std::getenv("SOJOURN_TEST_INPUTS");
  return set == nullptr ? 10'000 : std::atoi(set);
}

struct strangers : handshake {
  std::mt19937 random{seed()};
  testing::ScopedTrace trace{__FILE__, __LINE__,
                             "SOJOURN_TEST_SEED=" + std::to_string(seed()) + " replays it"};

  std::size_t below(std::size_t bound) { return random() % bound; }
  std::string random_bytes(std::size_t count) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  }
  std::string with_one_bit_changed(std::string bytes) {
    char& byte = bytes[below(bytes.size())];
    byte = static_cast<char>(byte ^ (1 << below(8)));
    return bytes;
  }
};

TEST_F(strangers, are_never_accepted) {
  for (int round = 0; round < inputs(); ++round) {
    connection to;
    accepting side(right);
    if (round % 4 == 0) {
      put(to.asker, random_bytes(below(200)));
    } else {
      const std::string said = hello_bytes();
      put(to.asker, said);
      ASSERT_EQ(go_on(side, to.acceptor), progress::waits);
      const challenge c = read_as<challenge>(take(to.asker));
      const std::string answer = round % 4 == 1 ? random_bytes(below(64))
                                 : round % 4 == 2
                                     ? proof_of('c', wrong, said, c.fresh)
                                     : with_one_bit_changed(proof_of('c', right, said, c.fresh));
      put(to.asker, answer);
    }
    shutdown(to.asker, SHUT_WR);
    ASSERT_EQ(go_on(side, to.acceptor), progress::refused) << "round " << round;
    ASSERT_EQ(take(to.asker), "") << "round " << round;
  }
}

TEST_F(strangers, are_never_taken_for_who_was_asked) {
  for (int round = 0; round < inputs(); ++round) {
    connection to;
    asking side(right, purpose::agent, 1, 0);
    ASSERT_EQ(side.go_on(to.asker), progress::waits);
    const std::string said = take(to.acceptor);
    const nonce fresh = new_nonce();
    const std::string answer =
        round % 3 == 0 ? random_bytes(below(200))
        : round % 3 == 1
            ? bytes_of(fresh) + proof_of('s', wrong, said, fresh)
            : with_one_bit_changed(bytes_of(fresh) + proof_of('s', right, said, fresh));
    put(to.acceptor, answer + "w");
    shutdown(to.acceptor, SHUT_WR);
    ASSERT_EQ(side.go_on(to.asker), progress::refused) << "round " << round;
    ASSERT_EQ(take(to.acceptor), "") << "round " << round;
  }
}

// --- What holds for as long as the connection does

int option_of(int socket, int level, int option) {
  int value = -1;
  socklen_t bytes = sizeof value;
  EXPECT_EQ(getsockopt(socket, level, option, &value, &bytes), 0);
  return value;
}

TEST(keep_watch_of, has_a_tcp_connection_watched_idle_or_sending) {
  int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(socket, 0);
  keep_watch_of(socket);
  EXPECT_EQ(option_of(socket, IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(option_of(socket, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option_of(socket, IPPROTO_TCP, TCP_KEEPIDLE), 1);
  EXPECT_EQ(option_of(socket, IPPROTO_TCP, TCP_KEEPINTVL), 1);
  EXPECT_EQ(option_of(socket, IPPROTO_TCP, TCP_KEEPCNT), 1);
  EXPECT_EQ(option_of(socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 1500);
  close(socket);
}

TEST(keep_watch_of, leaves_other_sockets_as_they_are) {
  connection with;
  keep_watch_of(with.asker);
  put(with.asker, "x");
  EXPECT_EQ(take(with.acceptor), "x");
  keep_watch_of(-1);
}

}  // namespace
