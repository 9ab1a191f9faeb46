// SPDX-License-Identifier: Apache-2.0
#include "base/saved_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "sojourn/errors.hpp"

namespace {

using sojourn::detail::file_reader;
using sojourn::detail::file_writer;

class saved_file : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sojourn_saved_XXXXXX";
    int fd = mkstemp(name);
    ASSERT_GE(fd, 0);
    close(fd);
    path = name;
  }
  void TearDown() override { unlink(path.c_str()); }

  /// What is wrong with the file, or "".
  std::string refusal() const {
    try {
      file_reader from(path);
    } catch (const sojourn::error& e) {
      return e.what();
    }
    return "";
  }
  std::string content() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& bytes) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  std::string path;
};

TEST_F(saved_file, gives_back_what_was_put_in_also_beyond_its_buffer) {
  std::vector<char> large(3'000'001);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 7 / 5);
  {
    file_writer to(path);
    to.put(42);
    to.bytes(large.data(), large.size());
    to.put('x');
    to.finish();
  }
  file_reader from(path);
  EXPECT_EQ(from.get<int>(), 42);
  std::vector<char> back(large.size());
  from.bytes(back.data(), back.size());
  EXPECT_EQ(back, large);
  EXPECT_EQ(from.get<char>(), 'x');
  EXPECT_THROW(from.get<char>(), sojourn::error);
}

TEST_F(saved_file, is_removed_when_it_was_not_finished) {
  {
    file_writer to(path);
    to.put(42);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(saved_file, refuses_every_shorter_file_and_every_changed_byte) {
  {
    file_writer to(path);
    for (int i = 0; i < 30; ++i) to.put(i);
    to.put('x');
    to.finish();
  }
  std::string whole = content();
  EXPECT_EQ(refusal(), "");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    put(whole.substr(0, n));
    EXPECT_NE(refusal(), "") << n << " bytes";
    std::string other = whole;
    other[n] = static_cast<char>(other[n] ^ 0x10);
    put(other);
    EXPECT_NE(refusal(), "") << "byte " << n;
  }
}

TEST_F(saved_file, a_pipe_that_nobody_writes_to_is_no_file) {
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  alarm(10);
  EXPECT_EQ(refusal(), path + " is not a regular file");
  alarm(0);
}

TEST_F(saved_file, tells_that_it_cannot_be_made) {
  EXPECT_THROW(file_writer("/proc/no-such-folder/file"), sojourn::error);
}

}  // namespace
