// SPDX-License-Identifier: Apache-2.0
#include "launcher/standard_outputs.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

using namespace sojourn::detail;

namespace {

struct a_pipe {
  a_pipe() { EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0); }
  ~a_pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  a_pipe(const a_pipe&) = delete;
  a_pipe& operator=(const a_pipe&) = delete;
  std::string read_all() const {
    char buffer[1 << 10];
    const ssize_t n = read(ends[0], buffer, sizeof buffer);
    return n < 0 ? "" : std::string(buffer, static_cast<std::size_t>(n));
  }

  int ends[2];
};

TEST(standard_outputs, are_apart_and_the_launcher_speaks_on_standard_error) {
  a_pipe output;
  a_pipe errors;
  standard_outputs both(output.ends[1], errors.ends[1]);
  both.output().put(0, "", "from a rank\n", true);
  both.say("sojourn run: \x1b[1m\n");
  EXPECT_TRUE(both.has_pending());
  both.write_some();
  EXPECT_FALSE(both.has_pending());
  EXPECT_EQ(output.read_all(), "from a rank\n");
  EXPECT_EQ(errors.read_all().find('\x1b'), std::string::npos) << "what it quotes is printable";
}

TEST(standard_outputs, are_one_where_they_are_the_same_file) {
  a_pipe output;
  standard_outputs both(output.ends[1], output.ends[1]);
  EXPECT_EQ(&both.output(), &both.errors());
  both.output().put(0, "", "begun", false);
  both.say("said\n");
  both.write_some();
  EXPECT_EQ(output.read_all(), "begun\nsaid\n");
}

TEST(standard_outputs, are_waited_for_while_something_is_to_be_written) {
  a_pipe output;
  a_pipe errors;
  standard_outputs both(output.ends[1], errors.ends[1]);
  both.say("said\n");
  std::vector<pollfd> waits;
  both.add_waits(waits);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].fd, -1);
  EXPECT_EQ(waits[1].fd, errors.ends[1]);
  both.abandon_pending();
  EXPECT_FALSE(both.has_pending());
  both.output().put(0, "", "on\n", true);
  EXPECT_TRUE(both.has_pending()) << "the other one goes on";
}

}  // namespace
