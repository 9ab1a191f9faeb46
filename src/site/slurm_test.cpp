// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/kernel_files.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/jobs/hosts.hpp"

namespace sojourn {
namespace {

namespace fs = std::filesystem;

/// Has a scontrol of its own, which knows one list.
class an_allocation : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "sojourn-slurm-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = std::getenv("PATH");
    std::ofstream(folder_ / "scontrol")
        << "#!/bin/sh\n[ \"$1 $2 $3\" = 'show hostnames node[1-3],gpu7' ] || exit 1\n"
           "printf '%s\\n' node1 node2 node3 gpu7\n";
    ASSERT_EQ(chmod((folder_ / "scontrol").c_str(), 0755), 0);
    setenv("PATH", (folder_.string() + ':' + path_).c_str(), 1);
    setenv("SLURM_JOB_ID", "12", 1);
    setenv("SLURM_JOB_NODELIST", "node[1-3],gpu7", 1);
    setenv("SLURM_TASKS_PER_NODE", "2(x3),1", 1);
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), 1);
    for (const char* v : {"SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE"})
      unsetenv(v);
    fs::remove_all(folder_);
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(an_allocation, has_the_hosts_and_as_many_ranks_as_tasks) {
  const allocation given = allocated_hosts().value();
  EXPECT_EQ(hosts_text(given.hosts), "node1:2,node2:2,node3:2,gpu7:1");
  EXPECT_TRUE(given.starter.starts_with("srun "));
  EXPECT_TRUE(given.starter.ends_with("--nodelist"));
  EXPECT_NE(given.text.find("12"), std::string::npos);
}

TEST_F(an_allocation, gives_fewer_ranks_from_its_first_host_on_and_never_more) {
  allocation given = allocated_hosts().value();
  EXPECT_THROW(take_ranks(given, 8), error);
  take_ranks(given, 7);
  EXPECT_EQ(hosts_text(given.hosts), "node1:2,node2:2,node3:2,gpu7:1");
  take_ranks(given, 3);
  EXPECT_EQ(hosts_text(given.hosts), "node1:2,node2:1");
  take_ranks(given, 1);
  EXPECT_EQ(hosts_text(given.hosts), "node1:1");
}

TEST_F(an_allocation, of_which_slurm_does_not_say_how_many_tasks_its_hosts_have_is_an_error) {
  for (const char* text : {"", "x", "2(x", "2(x3", "0", "2(x0)", "-1", "2(x99999999)", "1,,1", "1",
                           "2000(x4)", "2(x5)"}) {
    setenv("SLURM_TASKS_PER_NODE", text, 1);
    EXPECT_THROW(allocated_hosts(), error) << text;
  }
}

TEST_F(an_allocation, has_as_many_ranks_as_cores_in_a_step_and_none_in_a_step_of_several_tasks) {
  setenv("SLURM_TASKS_PER_NODE", "1", 1);
  setenv("SLURM_JOB_CPUS_PER_NODE", "8(x3),4", 1);
  EXPECT_EQ(hosts_text(allocated_hosts().value().hosts), "node1:8,node2:8,node3:8,gpu7:4");
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  EXPECT_FALSE(allocated_hosts());
  unsetenv("SLURM_STEP_NUM_TASKS");
  unsetenv("SLURM_JOB_CPUS_PER_NODE");
}

TEST_F(an_allocation, whose_hosts_are_not_told_is_an_error) {
  setenv("SLURM_JOB_NODELIST", "'; touch harm; '", 1);
  EXPECT_THROW(allocated_hosts(), error);
  EXPECT_FALSE(fs::exists("harm"));
}

TEST_F(an_allocation, of_this_host_alone_is_none) {
  std::ofstream(folder_ / "scontrol") << "#!/bin/sh\necho " << detail::host_name() << "\n";
  EXPECT_FALSE(allocated_hosts());
  unsetenv("SLURM_JOB_ID");
  EXPECT_FALSE(allocated_hosts());
}

}  // namespace
}  // namespace sojourn
