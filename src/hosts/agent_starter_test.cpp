// SPDX-License-Identifier: Apache-2.0
#include "hosts/agent_starter.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string_view>

using namespace sojourn::detail;
using sojourn::host_ranks;
using sojourn::hosts_options;

namespace {

/// All that the process writes there until it ends.
std::string read_to_end(int fd) {
  fcntl(fd, F_SETFL, 0);
  std::string text;
  char buffer[256];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  close(fd);
  return text;
}

TEST(a_starter, is_a_command_of_words_that_a_shell_takes_as_they_are) {
  hosts_options options;
  options.starter = "ssh -x";
  options.command = "my sojourn";
  EXPECT_EQ(starting_command(options, host_ranks{"node1", 4}), "ssh -x node1 'my sojourn' agent");
}

TEST(a_starter, has_pipes_in_place_of_its_standard_descriptors) {
  const agent_starter started = start_agent("sh -c 'read line; echo \"$line\"; echo no >&2'");
  constexpr std::string_view line = "begin\n";
  EXPECT_EQ(write(started.input, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  close(started.input);
  EXPECT_EQ(read_to_end(started.output), "begin\n");
  EXPECT_EQ(read_to_end(started.errors), "no\n");
  int status = -1;
  EXPECT_EQ(waitpid(started.pid, &status, 0), started.pid);
  EXPECT_EQ(status, 0);
}

TEST(a_starter, leads_a_group_of_its_own_so_that_one_signal_ends_all_that_it_has_started) {
  const agent_starter started = start_agent("sh -c 'sleep 60 & echo begun; wait'");
  fcntl(started.output, F_SETFL, 0);
  char buffer[16];
  EXPECT_GT(read(started.output, buffer, sizeof buffer), 0);
  EXPECT_EQ(kill(-started.pid, SIGKILL), 0);
  EXPECT_EQ(read_to_end(started.output), "") << "nobody has the pipe any more";
  EXPECT_EQ(waitpid(started.pid, nullptr, 0), started.pid);
  close(started.input);
  close(started.errors);
}

}  // namespace
