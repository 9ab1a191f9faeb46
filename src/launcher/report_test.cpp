// SPDX-License-Identifier: Apache-2.0
#include "launcher/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace {

using namespace sojourn::detail;

// Wait statuses, as the kernel encodes them.
int exited(int status) { return status << 8; }
int killed(int signal) { return signal; }

rank_end end_with(int wait_status, rank_state state) {
  return {2, 4242, wait_status, state, false};
}

struct death : testing::Test {
  crash_record crash{};

  void write_record(int signal, const char* message) {
    crash.signal = signal;
    crash.address = 0x10;
    std::strncpy(crash.message, message, sizeof crash.message - 1);
    crash.written = 1;
  }
};

TEST_F(death, a_good_end_is_status_0_after_finishing_or_without_sojourn) {
  EXPECT_FALSE(is_failure(end_with(exited(0), rank_state::finished)));
  EXPECT_FALSE(is_failure(end_with(exited(0), rank_state::absent)));
  EXPECT_TRUE(is_failure(end_with(exited(0), rank_state::attached)));
  EXPECT_TRUE(is_failure(end_with(exited(1), rank_state::finished)));
  EXPECT_TRUE(is_failure(end_with(killed(SIGKILL), rank_state::finished)));
}

TEST_F(death, decides_the_status_of_the_job) {
  EXPECT_EQ(job_status(end_with(exited(7), rank_state::attached), crash), 7);
  EXPECT_EQ(job_status(end_with(exited(0), rank_state::attached), crash), 1);
  EXPECT_EQ(job_status(end_with(killed(SIGSEGV), rank_state::attached), crash), 139);
  EXPECT_EQ(job_status({2, 4242, {}, rank_state::attached, false}, crash), 1);
  write_record(SIGBUS, "");
  EXPECT_EQ(job_status({2, 4242, {}, rank_state::attached, false}, crash), 128 + SIGBUS);
  EXPECT_EQ(job_status(end_with(killed(SIGKILL), rank_state::attached), crash), 128 + SIGBUS);
}

TEST_F(death, names_signals) {
  EXPECT_EQ(signal_text(SIGSEGV), "SIGSEGV (segmentation fault)");
  EXPECT_EQ(signal_text(SIGXCPU), "SIGXCPU (CPU time limit exceeded)");
  EXPECT_EQ(signal_text(12345), "signal 12345");
}

TEST_F(death, reports_what_the_rank_left) {
  write_record(SIGSEGV, "a stack has overflowed\nin two lines\n");
  crash.frames[0] = 0x4012ab;
  crash.frame_count = 1;
  EXPECT_EQ(death_report(end_with(killed(SIGSEGV), rank_state::attached), crash, "./tree", ""),
            "sojourn run: rank 2 (pid 4242, ./tree) was killed by SIGSEGV (segmentation fault) at "
            "address 0x10\n"
            "  a stack has overflowed\n"
            "  in two lines\n"
            "  stack, youngest frame first:\n"
            "    #0  0x4012ab\n");
}

TEST_F(death, shortens_the_stack_of_a_recursion) {
  write_record(SIGSEGV, "");
  std::fill(crash.frames, crash.frames + 10, 0x401000);
  crash.frames[10] = 0x402000;
  crash.frames[11] = 0x7f0000001000;
  crash.frame_count = 12;
  std::string text =
      death_report(end_with(killed(SIGSEGV), rank_state::attached), crash, "./t", "");
  EXPECT_NE(text.find("    #0  0x401000\n"
                      "    the same 9 more times\n"
                      "    #10 0x402000\n"
                      "    #11 0x7f0000001000  in a shared library\n"),
            std::string::npos)
      << text;
}

TEST_F(death, survives_a_record_of_garbage) {
  std::memset(static_cast<void*>(&crash), 0xff, sizeof crash);
  crash.written = 1;
  std::string text =
      death_report(end_with(exited(3), rank_state::attached), crash, "./tree", "/nonexistent");
  EXPECT_NE(text.find("exited with status 3"), std::string::npos);
  EXPECT_NE(text.find("the same 47 more times"), std::string::npos);
}

}  // namespace
