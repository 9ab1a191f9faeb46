// SPDX-License-Identifier: Apache-2.0
#include "hosts/job_input.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

using namespace sojourn::detail;

namespace {

struct a_pipe {
  a_pipe() { EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0); }
  ~a_pipe() {
    for (int fd : ends) {
      if (fd >= 0) close(fd);
    }
  }
  a_pipe(const a_pipe&) = delete;
  a_pipe& operator=(const a_pipe&) = delete;
  int give_writer() { return std::exchange(ends[1], -1); }
  void write_all(std::string_view text) const {
    EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string read_all() const {
    char buffer[1 << 10];
    const ssize_t n = read(ends[0], buffer, sizeof buffer);
    return n < 0 ? std::string("nothing yet") : std::string(buffer, static_cast<std::size_t>(n));
  }

  int ends[2];
};

TEST(the_input_of_a_job, is_passed_on_and_ends_as_it_does_here) {
  a_pipe here;
  a_pipe there;
  job_input input(here.ends[0]);
  input.pass_to(there.give_writer());
  here.write_all("one\n");
  input.read_some();
  input.write_some();
  EXPECT_EQ(there.read_all(), "one\n");
  EXPECT_EQ(there.read_all(), "nothing yet");
  close(here.give_writer());
  input.read_some();
  EXPECT_FALSE(input.wants_more());
  input.write_some();
  EXPECT_EQ(there.read_all(), "") << "the end";
}

TEST(the_input_of_a_job, is_not_read_before_what_was_read_has_been_taken) {
  a_pipe here;
  a_pipe there;
  job_input input(here.ends[0]);
  here.write_all("one\n");
  EXPECT_TRUE(input.wants_more());
  input.read_some();
  EXPECT_FALSE(input.wants_more());
  input.write_some();
  EXPECT_FALSE(input.wants_more()) << "nobody is there yet";
  const int pipe = there.give_writer();
  input.pass_to(pipe);
  EXPECT_EQ(input.waits_to_write(), pipe);
  input.write_some();
  EXPECT_TRUE(input.wants_more());
  EXPECT_EQ(input.waits_to_write(), -1);
}

TEST(the_input_of_a_job, is_not_read_any_more_when_rank_0_has_closed_its_own) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  a_pipe here;
  a_pipe there;
  job_input input(here.ends[0]);
  input.pass_to(there.give_writer());
  close(std::exchange(there.ends[0], -1));
  here.write_all("one\n");
  input.read_some();
  input.write_some();
  EXPECT_FALSE(input.wants_more());
  EXPECT_EQ(input.waits_to_write(), -1);
  std::signal(SIGPIPE, before);
}

}  // namespace
