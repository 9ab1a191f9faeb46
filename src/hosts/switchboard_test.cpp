// SPDX-License-Identifier: Apache-2.0
#include "hosts/switchboard.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <functional>

#include "transport/link/agent_channel.hpp"

using namespace sojourn::detail;

namespace {

constexpr int ranks = 4;

/// Two hosts of two ranks each, in this process.
class two_hosts : public ::testing::Test {
 protected:
  two_hosts()
      : secret(new_secret()),
        a(secret, {0, 2}, ranks, true),
        b(secret, {2, 2}, ranks, true),
        boards{&a, &b} {
    std::vector<address> where;
    for (int r = 0; r < ranks; ++r) where.push_back(at_port(board_of(r).port()));
    a.learn(where);
    b.learn(where);
  }

  static address at_port(int port) {
    address here = *address_from_text("127.0.0.1:1");
    here.set_port(port);
    return here;
  }
  switchboard& board_of(int rank) { return rank < 2 ? a : b; }

  void wants(int from, int to) {
    const rank_to_agent packet{rank_to_agent::wants, to, ""};
    ASSERT_TRUE(send_packet(board_of(from).channel_of(from), &packet, sizeof packet, -1));
  }

  /// What a rank gets: the socket, by the number of the rank at its other end.
  void take_sockets() {
    for (int r = 0; r < ranks; ++r) {
      agent_to_rank packet;
      int socket = -1;
      bool has_ended = false;
      while (take_packet(board_of(r).channel_of(r), &packet, sizeof packet, socket, has_ended)) {
        EXPECT_FALSE(got.contains({r, packet.rank})) << "a second connection";
        got[{r, packet.rank}] = socket;
        EXPECT_EQ(packet.is_sealed, 1u);
        keys[{r, packet.rank}] = packet.keys;
      }
    }
  }

  bool serve_until(const std::function<bool()>& holds, int patience_ms = 8000) {
    const auto end = switchboard::clock::now() + std::chrono::milliseconds(patience_ms);
    while (!holds()) {
      if (switchboard::clock::now() > end) return false;
      pollfd waits[] = {{a.descriptor(), POLLIN, 0}, {b.descriptor(), POLLIN, 0}};
      (void)poll(waits, 2, 5);
      for (switchboard* board : boards) board->serve();
      take_sockets();
    }
    return true;
  }

  /// What one writes the other reads.
  void expect_connected(int x, int y) {
    const int of_x = got.at({x, y});
    const int of_y = got.at({y, x});
    const char word = static_cast<char>('a' + x);
    char read_word = 0;
    ASSERT_EQ(write(of_x, &word, 1), 1);
    pollfd wait{of_y, POLLIN, 0};
    ASSERT_EQ(poll(&wait, 1, 5000), 1);
    ASSERT_EQ(read(of_y, &read_word, 1), 1);
    EXPECT_EQ(read_word, word);
    const seal_keys& keys_of_x = keys.at({x, y});
    const seal_keys& keys_of_y = keys.at({y, x});
    EXPECT_EQ(keys_of_x.out, keys_of_y.in);
    EXPECT_EQ(keys_of_x.in, keys_of_y.out);
    EXPECT_NE(keys_of_x.in, keys_of_x.out);
  }

  ~two_hosts() override {
    for (const auto& [pair, socket] : got) close(socket);
  }

  job_secret secret;
  switchboard a;
  switchboard b;
  switchboard* boards[2];
  std::map<std::pair<int, int>, int> got;
  std::map<std::pair<int, int>, seal_keys> keys;
};

TEST_F(two_hosts, connect_a_rank_to_the_one_that_it_asks_for) {
  wants(1, 2);
  ASSERT_TRUE(serve_until([&] { return got.size() == 2; }));
  expect_connected(1, 2);
  expect_connected(2, 1);
}

TEST_F(two_hosts, make_one_connection_where_two_ranks_call_each_other_at_once) {
  for (int x : {0, 1}) {
    for (int y : {2, 3}) {
      wants(y, x);
      wants(x, y);
      wants(y, x);
    }
  }
  ASSERT_TRUE(serve_until([&] { return got.size() == 8; }));
  for (int x : {0, 1}) {
    for (int y : {2, 3}) expect_connected(x, y);
  }
  EXPECT_FALSE(serve_until([] { return false; }, 300));
  EXPECT_EQ(got.size(), 8u);
}

TEST_F(two_hosts, ask_nobody_for_a_rank_of_their_own_or_of_no_host) {
  wants(0, 1);
  wants(0, 0);
  wants(0, -1);
  wants(0, ranks);
  EXPECT_FALSE(serve_until([&] { return !got.empty(); }, 300));
  EXPECT_TRUE(a.take_troubles().empty());
}

TEST_F(two_hosts, tell_why_there_is_no_connection) {
  const listener closed = listen_anywhere();
  close(closed.socket);
  a.learn(std::vector<address>(ranks, at_port(closed.port)));
  wants(1, 3);
  std::vector<switchboard::trouble> troubles;
  ASSERT_TRUE(serve_until(
      [&] {
        for (auto& t : a.take_troubles()) troubles.push_back(t);
        return !troubles.empty();
      },
      30'000));
  ASSERT_EQ(troubles.size(), 1u);
  EXPECT_EQ(troubles[0].here, 1);
  EXPECT_EQ(troubles[0].there, 3);
  EXPECT_FALSE(troubles[0].is_broken);
  EXPECT_EQ(troubles[0].why, "Connection refused");
}

TEST_F(two_hosts, wait_for_an_answer_as_long_as_it_takes) {
  // The system accepts connections for it, and nobody answers: so is a host that is stopped.
  const listener stopped = listen_anywhere();
  a.learn(std::vector<address>(ranks, at_port(stopped.port)));
  wants(1, 3);
  EXPECT_FALSE(serve_until([&] { return !a.take_troubles().empty(); }, 2600));
  close(stopped.socket);
}

TEST_F(two_hosts, pass_on_what_a_rank_says_of_a_broken_connection) {
  rank_to_agent packet{rank_to_agent::broke, 3, "it was cut"};
  ASSERT_TRUE(send_packet(a.channel_of(0), &packet, sizeof packet, -1));
  std::vector<switchboard::trouble> troubles;
  ASSERT_TRUE(serve_until([&] { return !(troubles = a.take_troubles()).empty(); }));
  EXPECT_TRUE(troubles[0].is_broken);
  EXPECT_EQ(troubles[0].there, 3);
  EXPECT_EQ(troubles[0].why, "it was cut");
}

TEST_F(two_hosts, let_nobody_in_who_does_not_know_the_secret) {
  int strangers[3];
  job_secret wrong = secret;
  wrong[0] ^= 1;
  asking proves(wrong, purpose::ranks, 3, 0);
  for (int& s : strangers) {
    s = begin_to_connect(at_port(a.port()));
    ASSERT_GE(s, 0);
    pollfd wait{s, POLLOUT, 0};
    ASSERT_EQ(poll(&wait, 1, 5000), 1);
  }
  const char noise[64] = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_EQ(write(strangers[1], noise, sizeof noise), static_cast<ssize_t>(sizeof noise));
  // The third says nothing, and is not waited for.
  auto is_closed = [](int s) {
    char c;
    const ssize_t n = recv(s, &c, 1, MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN);
  };
  progress how = progress::waits;
  ASSERT_TRUE(serve_until([&] {
    if (how == progress::waits) how = proves.go_on(strangers[0]);
    return how == progress::refused && is_closed(strangers[1]) && is_closed(strangers[2]);
  }));
  EXPECT_TRUE(got.empty());
  for (int s : strangers) close(s);
  // It is there for others afterwards.
  wants(0, 3);
  ASSERT_TRUE(serve_until([&] { return got.size() == 2; }));
  expect_connected(0, 3);
}

TEST_F(two_hosts, keep_what_a_rank_has_sent_when_it_ends) {
  wants(0, 2);
  ASSERT_TRUE(serve_until([&] { return got.size() == 2; }));
  const int of_0 = got.at({0, 2});
  ASSERT_EQ(write(of_0, "last", 4), 4);
  ASSERT_EQ(write(got.at({2, 0}), "unread", 6), 6);
  close(of_0);
  got.erase({0, 2});
  char text[8];
  ASSERT_EQ(recv(got.at({2, 0}), text, sizeof text, 0), 4);
  EXPECT_EQ(recv(got.at({2, 0}), text, sizeof text, MSG_DONTWAIT), -1) << "it was cut off";
}

}  // namespace
