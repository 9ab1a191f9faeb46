// SPDX-License-Identifier: Apache-2.0
#include "launcher/output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <random>
#include <string>
#include <utility>

namespace {

using namespace sojourn::detail;

struct pipe_pair {
  int read_end = -1;
  int write_end = -1;

  pipe_pair() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read_end = ends[0];
    write_end = ends[1];
  }
  ~pipe_pair() {
    close_write();
    if (read_end >= 0) close(read_end);
  }
  void close_write() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }
  void send(const std::string& text) {
    ASSERT_EQ(write(write_end, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  int give_read_end() { return std::exchange(read_end, -1); }
  std::string take() {
    std::string text(1 << 20, '\0');
    ssize_t size = read(read_end, text.data(), text.size());
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return text;
  }
};

struct two_writers : testing::Test {
  pipe_pair destination;
  pipe_pair a_pipe;
  pipe_pair b_pipe;
  output_sink sink{destination.write_end};
  output_stream a{a_pipe.give_read_end(), 0, "", sink};
  output_stream b{b_pipe.give_read_end(), 1, "", sink};

  std::string written() {
    std::string all;
    do {
      sink.write_some();
      all += destination.take();
    } while (sink.has_pending());
    return all;
  }
};

using output = two_writers;

TEST_F(output, holds_a_line_until_it_is_whole) {
  a_pipe.send("first ");
  a.read_some();
  EXPECT_EQ(written(), "");
  b_pipe.send("other\n");
  b.read_some();
  a_pipe.send("half\nrest");
  a.read_some();
  EXPECT_EQ(written(), "other\nfirst half\n");
  a_pipe.close_write();
  a.read_some();
  EXPECT_EQ(written(), "rest");
  EXPECT_FALSE(a.is_open());
}

TEST_F(output, ends_an_unfinished_line_before_another_writer) {
  a_pipe.send("unfinished");
  a.read_some();
  a.flush_partial_line();
  b_pipe.send("b\n");
  b.read_some();
  EXPECT_EQ(written(), "unfinished\nb\n");
}

TEST_F(output, continues_its_own_unfinished_line) {
  a_pipe.send("unfinished");
  a.read_some();
  a.flush_partial_line();
  a_pipe.send(", continued\n");
  a.read_some();
  EXPECT_EQ(written(), "unfinished, continued\n");
}

TEST_F(output, labels_each_line_once) {
  pipe_pair pipe;
  output_stream labelled(pipe.give_read_end(), 2, "[2] ", sink);
  pipe.send("x\n\ny");
  labelled.read_some();
  labelled.flush_partial_line();
  pipe.send("z\n");
  labelled.read_some();
  EXPECT_EQ(written(), "[2] x\n[2] \n[2] yz\n");
}

TEST_F(output, finishes_with_what_the_pipe_holds_though_somebody_keeps_it_open) {
  a_pipe.send("one\ntwo");
  a.finish();
  EXPECT_TRUE(a.is_open());
  a_pipe.send("too late\n");
  while (a.is_open()) a.read_some();
  EXPECT_EQ(written(), "one\ntwo");
  b.finish();
  EXPECT_FALSE(b.is_open());
}

TEST_F(output, forwards_an_endless_line_in_pieces) {
  std::string endless(line_bytes_max + 10, 'x');
  std::string got;
  for (std::size_t sent = 0; sent < endless.size();) {
    std::size_t size = std::min<std::size_t>(endless.size() - sent, 10000);
    a_pipe.send(endless.substr(sent, size));
    sent += size;
    a.read_some();
    got += written();
  }
  EXPECT_GE(got.size(), line_bytes_max);
  a_pipe.close_write();
  a.read_some();
  got += written();
  EXPECT_EQ(got, endless);
}

TEST_F(output, a_reader_that_has_gone_is_noticed_and_nothing_blocks) {
  close(destination.give_read_end());
  signal(SIGPIPE, SIG_IGN);
  a_pipe.send("text\n");
  a.read_some();
  sink.write_some();
  EXPECT_EQ(sink.failure(), EPIPE);
  EXPECT_FALSE(sink.has_pending());
  a_pipe.send("more\n");
  a.read_some();
  EXPECT_FALSE(sink.has_pending());
}

TEST_F(output, a_reader_that_pauses_stops_the_reading_not_the_writer) {
  std::string line(60000, 'y');
  line.back() = '\n';
  std::size_t sent = 0;
  for (int i = 0; i < 1000 && a.wants_read(); ++i) {
    a_pipe.send(line);
    sent += line.size();
    a.read_some();
    sink.write_some();
  }
  EXPECT_FALSE(sink.has_room());
  EXPECT_FALSE(a.wants_read());
  EXPECT_LT(sent, std::size_t{2} << 20);
  std::size_t received = 0;
  while (sink.has_pending() || received < sent) received += written().size();
  EXPECT_EQ(received, sent);
}

TEST_F(output, random_pieces_of_two_writers_keep_their_lines) {
  unsigned seed = 7;
  std::mt19937 random(seed);
  std::string pending[2];
  std::string expected[2];
  std::string got;
  for (int step = 0; step < 3000; ++step) {
    int who = static_cast<int>(random() % 2);
    if (pending[who].empty()) {
      pending[who] = std::string(random() % 200, who == 0 ? 'a' : 'b') + "\n";
      expected[who] += pending[who];
    }
    std::size_t size = 1 + random() % pending[who].size();
    (who == 0 ? a_pipe : b_pipe).send(pending[who].substr(0, size));
    pending[who].erase(0, size);
    (who == 0 ? a : b).read_some();
    got += written();
  }
  EXPECT_EQ(got.find("ab"), std::string::npos) << "seed " << seed;
  EXPECT_EQ(got.find("ba"), std::string::npos) << "seed " << seed;
  auto count = [](const std::string& text, char c) {
    return std::count(text.begin(), text.end(), c);
  };
  a_pipe.close_write();
  b_pipe.close_write();
  while (a.is_open()) a.read_some();
  while (b.is_open()) b.read_some();
  got += written();
  EXPECT_EQ(count(got, 'a'), count(expected[0], 'a') - count(pending[0], 'a'));
  EXPECT_EQ(count(got, 'b'), count(expected[1], 'b') - count(pending[1], 'b'));
}

TEST(output_files, the_same_file_is_recognised) {
  pipe_pair pipe;
  int copy = dup(pipe.write_end);
  EXPECT_TRUE(same_file(pipe.write_end, copy));
  close(copy);
  pipe_pair other;
  EXPECT_FALSE(same_file(pipe.write_end, other.write_end));
  EXPECT_FALSE(same_file(-1, other.write_end));
}

}  // namespace
