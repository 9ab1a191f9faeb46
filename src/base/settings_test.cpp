// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

using sojourn::detail::edits_between;
using sojourn::detail::is_setting_of_a_run;
using sojourn::detail::unknown_settings;

TEST(settings, edits_are_the_fewest) {
  EXPECT_EQ(edits_between("", ""), 0u);
  EXPECT_EQ(edits_between("", "abc"), 3u);
  EXPECT_EQ(edits_between("abc", ""), 3u);
  EXPECT_EQ(edits_between("child", "child"), 0u);
  EXPECT_EQ(edits_between("chidl", "child"), 1u);
  EXPECT_EQ(edits_between("chid", "child"), 1u);
  EXPECT_EQ(edits_between("kitten", "sitting"), 3u);
}

TEST(settings, unknown_ones_are_told_with_the_nearest_name) {
  setenv("SOJOURN_BALANCE", "steal", 1);
  setenv("SOJOURN_JOB", "1-2", 1);
  setenv("SOJOURN_TEST_ONLY", "1", 1);
  EXPECT_EQ(unknown_settings(), std::vector<std::string>{});
  setenv("SOJOURN_BALNACE", "steal", 1);
  setenv("SOJOURN_QUICKER", "1", 1);
  EXPECT_EQ(unknown_settings(),
            (std::vector<std::string>{"SOJOURN_BALNACE is not a setting of Sojourn; did you mean "
                                      "SOJOURN_BALANCE?",
                                      "SOJOURN_QUICKER is not a setting of Sojourn"}));
  for (const char* name : {"SOJOURN_BALANCE", "SOJOURN_JOB", "SOJOURN_TEST_ONLY", "SOJOURN_BALNACE",
                           "SOJOURN_QUICKER"}) {
    unsetenv(name);
  }
}

TEST(settings, a_run_is_made_again_with_those_that_it_reads) {
  for (const char* name : {"SOJOURN_STACK_KIB", "SOJOURN_VIA", "SOJOURN_DELAY",
                           "SOJOURN_SOAK_MOVES", "SOJOURN_TEST_SEED"}) {
    EXPECT_TRUE(is_setting_of_a_run(name)) << name;
  }
  for (const char* name : {"SOJOURN_CMAKE_ARGS", "SOJOURN_RANKS", "SOJOURN_JOB", "SOJOURN_RANK",
                           "SOJOURN_QUICKER", "SOJOURN_SOAK_FUZZ", "SOJOURN_DELAYS", "PATH"}) {
    EXPECT_FALSE(is_setting_of_a_run(name)) << name;
  }
}
