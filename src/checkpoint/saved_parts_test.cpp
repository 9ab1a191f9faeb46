// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/saved_parts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "sojourn/errors.hpp"

namespace {

using namespace sojourn::detail;

std::string done;

const saved_part numbers{"numbers",
                         [](file_writer& to) {
                           done += 's';
                           to.put(7L);
                         },
                         [](file_reader& from) {
                           done += 'l';
                           if (from.get<long>() == 7) done += '7';
                         }};
const saved_part letters{"letters",
                         [](file_writer& to) {
                           done += 'S';
                           to.put('x');
                         },
                         [](file_reader& from) {
                           done += 'L';
                           if (from.get<char>() == 'x') done += 'x';
                         }};
const saved_part forgetful{"numbers", numbers.save, [](file_reader&) {}};
const saved_part greedy{"numbers", numbers.save, [](file_reader& from) {
                          (void)from.get<long>();
                          (void)from.get<int>();
                        }};

class saved_parts : public testing::Test {
 protected:
  void SetUp() override { done.clear(); }
  void TearDown() override { std::filesystem::remove(file_); }

  void save(const std::vector<saved_part>& parts) {
    file_writer to(file_);
    save_parts(to, parts);
    to.finish();
  }
  /// What is wrong, with FILE for the name of the file; "" when nothing is.
  std::string load(const std::vector<saved_part>& parts) {
    file_reader from(file_);
    try {
      load_parts(from, "FILE", parts);
    } catch (const sojourn::error& e) {
      return e.what();
    }
    return "";
  }

  std::string file_ = testing::TempDir() + "saved_parts." + std::to_string(getpid());
};

TEST_F(saved_parts, are_read_in_the_order_in_which_they_were_written) {
  save({numbers, letters, numbers});
  EXPECT_EQ(load({numbers, letters, numbers}), "");
  EXPECT_EQ(done, "sSsl7Lxl7");
}

TEST_F(saved_parts, a_part_that_reads_less_or_more_than_it_wrote_is_told_of_with_its_successor) {
  save({numbers, letters});
  const std::string told = "the part `letters` of FILE does not begin where `numbers` ends";
  EXPECT_EQ(load({forgetful, letters}), told);
  EXPECT_EQ(done, "sS");
  EXPECT_EQ(load({numbers, letters}), "");
  save({numbers, letters, letters});
  EXPECT_EQ(load({greedy, letters}), told);
}

TEST_F(saved_parts, another_part_than_the_one_that_comes_next_is_not_read) {
  save({letters, numbers});
  EXPECT_EQ(load({numbers, letters}),
            "the part `numbers` of FILE does not begin where its head ends");
  EXPECT_EQ(done, "Ss");
}

}  // namespace
