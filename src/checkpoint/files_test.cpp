// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/files.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/saved_file.hpp"
#include "sojourn/errors.hpp"

namespace {

using namespace sojourn::detail;

class checkpoint_files : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sojourn_checkpoint_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    path = folder + "/state";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  void touch(const std::string& file) const { std::ofstream(file) << "x"; }
  bool is_there(const std::string& file) const { return access(file.c_str(), F_OK) == 0; }
  std::string refusal() const {
    try {
      read_set(path);
    } catch (const sojourn::error& e) {
      return e.what();
    }
    return "";
  }

  std::string folder;
  std::string path;
};

TEST_F(checkpoint_files, a_set_is_replaced_in_one_step_and_read_back) {
  EXPECT_EQ(generation_at(path), 0u);
  for (std::uint64_t generation : {1u, 2u}) {
    checkpoint_set set;
    set.ranks = 3;
    set.generation = generation;
    set.stamp = 99 + generation;
    write_set(path, set, "a:2,b:1");
    EXPECT_EQ(read_set(path), set);
    EXPECT_EQ(read_hosts(path), "a:2,b:1");
    EXPECT_EQ(generation_at(path), generation);
    EXPECT_FALSE(is_there(path + ".new"));
  }
}

TEST_F(checkpoint_files, another_version_is_named) {
  file_writer to(path);
  to.put(checkpoint_file::set);
  to.put(checkpoint_version + 1);
  to.put(checkpoint_set{});
  to.finish();
  EXPECT_EQ(refusal(), "cannot restore: " + path +
                           " was written by another version of Sojourn (its format is " +
                           std::to_string(checkpoint_version + 1) + ", and " +
                           std::to_string(checkpoint_version) +
                           " is read here): use the `sojourn` command that the program was built "
                           "with");
}

TEST_F(checkpoint_files, what_is_no_checkpoint_is_not_replaced) {
  touch(path);
  EXPECT_THROW(generation_at(path), sojourn::error);
}

TEST_F(checkpoint_files, older_generations_of_a_rank_are_removed_and_nothing_else) {
  for (const char* end : {".1.0", ".2.0", ".2.1", ".1.1", ".1.7", ".1.0.bak", ".x.0", "x.1.0"}) {
    touch(path + end);
  }
  remove_others(path, 2, 0, 2);
  for (const char* gone : {".1.0", ".1.7"}) EXPECT_FALSE(is_there(path + gone)) << gone;
  for (const char* kept : {".2.0", ".2.1", ".1.1", ".1.0.bak", ".x.0", "x.1.0"}) {
    EXPECT_TRUE(is_there(path + kept)) << kept;
  }
}

}  // namespace
