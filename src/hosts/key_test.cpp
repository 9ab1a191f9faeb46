// SPDX-License-Identifier: Apache-2.0
#include "hosts/key.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "sojourn/errors.hpp"

namespace sojourn::detail {
namespace {

namespace fs = std::filesystem;

class a_key : public testing::Test {
 protected:
  void SetUp() override {
    if (!why_no_proofs().empty()) GTEST_SKIP() << why_no_proofs();
    std::string name = fs::temp_directory_path() / "sojourn-key-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
    setenv("SOJOURN_TRUST", "key", 1);
  }
  void TearDown() override {
    unsetenv("SOJOURN_TRUST");
    unsetenv("XDG_CONFIG_HOME");
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  fs::path folder_;
};

TEST_F(a_key, is_made_when_it_is_needed_and_is_the_users_alone) {
  EXPECT_EQ(key_file(), folder_ / "sojourn/key");
  EXPECT_FALSE(read_key(key_file()));
  const told_secret told = draw_secret();
  EXPECT_TRUE(told.word.starts_with("key:"));
  struct stat is{};
  ASSERT_EQ(stat(key_file().c_str(), &is), 0);
  EXPECT_EQ(is.st_mode & 0777, 0600u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "sojourn"), {}), 1) << "a draft is left";
}

TEST_F(a_key, gives_all_who_have_it_the_secret_of_the_job_and_each_job_another) {
  const told_secret first = draw_secret();
  const told_secret second = draw_secret();
  EXPECT_EQ(learn_secret(first.word), first.secret);
  EXPECT_EQ(learn_secret(second.word), second.secret);
  EXPECT_NE(first.secret, second.secret);
  EXPECT_EQ(first.word.find(to_hex(first.secret)), first.word.npos) << "the secret is in the word";
  fs::remove(key_file());
  make_key(key_file());
  EXPECT_NE(learn_secret(first.word), first.secret) << "another key gives the same secret";
}

TEST_F(a_key, is_one_when_many_make_it_at_once) {
  std::vector<std::thread> makers;
  for (int i = 0; i < 8; ++i) makers.emplace_back([] { make_key(key_file()); });
  for (std::thread& maker : makers) maker.join();
  EXPECT_TRUE(read_key(key_file()));
}

TEST_F(a_key, is_refused_when_others_may_read_it_or_it_is_something_else) {
  make_key(key_file());
  ASSERT_EQ(chmod(key_file().c_str(), 0644), 0);
  EXPECT_THROW(read_key(key_file()), error);
  ASSERT_EQ(chmod(key_file().c_str(), 0600), 0);
  EXPECT_TRUE(read_key(key_file()));
  std::ofstream(key_file()) << "something else\n";
  EXPECT_THROW(read_key(key_file()), error);
  std::ofstream(key_file()) << std::string(66, 'a');
  EXPECT_THROW(read_key(key_file()), error);
  fs::remove(key_file());
  fs::create_symlink("/dev/zero", key_file());
  EXPECT_THROW(read_key(key_file()), error);
}

TEST_F(a_key, that_is_not_on_this_host_is_told_by_name) {
  const std::string word = draw_secret().word;
  fs::remove(key_file());
  try {
    (void)learn_secret(word);
    FAIL() << "it was learnt";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find(key_file() + ", is not on this host"), std::string::npos)
        << e.what();
  }
  EXPECT_FALSE(fs::exists(key_file())) << "only the process of rank 0 makes it";
}

TEST_F(a_key, that_is_told_to_all_encrypts_nothing) {
  setenv("SOJOURN_TRUST", "network", 1);
  setenv("SOJOURN_ENCRYPT", "on", 1);
  try {
    (void)draw_secret();
    ADD_FAILURE() << "it was drawn";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("--encrypt protects nothing"), std::string::npos);
  }
  unsetenv("SOJOURN_ENCRYPT");
}

TEST_F(a_key, is_not_needed_where_the_user_trusts_the_network) {
  setenv("SOJOURN_TRUST", "network", 1);
  const told_secret told = draw_secret();
  EXPECT_EQ(learn_secret(told.word), told.secret);
  EXPECT_FALSE(fs::exists(key_file()));
  setenv("SOJOURN_TRUST", "key", 1);
  EXPECT_THROW(learn_secret(told.word), error) << "the other side has not said that it trusts";
  EXPECT_THROW(learn_secret(""), error);
  EXPECT_THROW(learn_secret("open:x"), error);
  setenv("SOJOURN_TRUST", "everybody", 1);
  EXPECT_THROW(draw_secret(), error);
}

}  // namespace
}  // namespace sojourn::detail
