// SPDX-License-Identifier: Apache-2.0
// A launcher of this test's own, which speaks version 1 of PMI with processes that are threads.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "hosts/pmi_server.hpp"
#include "site/started_together.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {
namespace {

class launcher {
 public:
  explicit launcher(int count) : server_(count) {
    for (int i = 0; i < count; ++i) {
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
      sockets_.push_back(ends[0]);
      process_ends_.push_back(ends[1]);
    }
    for (int i = 0; i < count; ++i) serving_.emplace_back([this, i] { serve(i); });
  }
  ~launcher() {
    for (std::thread& t : serving_) t.join();
    for (int s : sockets_) close(s);
  }

  std::unique_ptr<started_together> process(int number) {
    setenv("PMI_FD", std::to_string(process_ends_[static_cast<std::size_t>(number)]).c_str(), 1);
    setenv("PMI_RANK", std::to_string(number).c_str(), 1);
    setenv("PMI_SIZE", std::to_string(process_ends_.size()).c_str(), 1);
    auto made = started_by_pmi();
    for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE"}) unsetenv(name);
    return made;
  }

  int finalized() {
    const std::lock_guard lock(guard_);
    return server_.finalized();
  }

 private:
  void serve(int from) {
    char c = 0;
    for (std::string line; read(sockets_[static_cast<std::size_t>(from)], &c, 1) == 1;) {
      if (c != '\n') {
        line += c;
        continue;
      }
      const std::lock_guard lock(guard_);
      for (const auto& answer : server_.hear(from, line)) {
        const std::string text = answer.line + '\n';
        (void)!write(sockets_[static_cast<std::size_t>(answer.to)], text.data(), text.size());
      }
      line.clear();
    }
  }

  std::mutex guard_;
  tests::pmi_server server_;
  std::vector<int> sockets_;
  std::vector<int> process_ends_;
  std::vector<std::thread> serving_;
};

TEST(processes_of_pmi, tell_each_other_words) {
  constexpr int count = 5;
  launcher site(count);
  std::vector<std::unique_ptr<started_together>> processes;
  for (int i = 0; i < count; ++i) processes.push_back(site.process(i));
  std::vector<std::thread> running;
  std::atomic<int> right = 0;
  for (int i = 0; i < count; ++i) {
    running.emplace_back([&, i] {
      auto& own = processes[static_cast<std::size_t>(i)];
      EXPECT_EQ(own->number(), i);
      EXPECT_EQ(own->count(), count);
      for (int round = 0; round < 3; ++round) {
        const std::string text = "word=" + std::to_string(round) + ":/+=" + std::string(900, 'x');
        const auto words = own->exchange(text + std::to_string(i), {0, 1, 2, 3, 4});
        ASSERT_EQ(words.size(), static_cast<std::size_t>(count));
        for (int from = 0; from < count; ++from)
          right += words[static_cast<std::size_t>(from)] == text + std::to_string(from);
      }
      own.reset();
    });
  }
  for (std::thread& t : running) t.join();
  EXPECT_EQ(right, 3 * count * count);
  EXPECT_EQ(site.finalized(), count);
}

TEST(processes_of_pmi, say_so_when_the_launcher_has_gone) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  close(ends[0]);
  setenv("PMI_FD", std::to_string(ends[1]).c_str(), 1);
  setenv("PMI_RANK", "0", 1);
  setenv("PMI_SIZE", "2", 1);
  EXPECT_THROW(started_by_pmi(), error);
  for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE"}) unsetenv(name);
  close(ends[1]);
}

TEST(a_process, that_nobody_has_started_with_others_is_alone) {
  EXPECT_EQ(launcher_of_this_process(), nullptr);
  setenv("SLURM_STEP_NUM_TASKS", "1", 1);
  setenv("SLURM_PROCID", "0", 1);
  EXPECT_EQ(launcher_of_this_process(), nullptr);
  unsetenv("SLURM_STEP_NUM_TASKS");
  unsetenv("SLURM_PROCID");
}

TEST(a_process, that_cannot_find_the_others_says_what_to_do) {
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  setenv("SLURM_PROCID", "0", 1);
  try {
    (void)launcher_of_this_process();
    FAIL() << "it would be a job of its own";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("srun --mpi=pmix"), std::string::npos) << e.what();
  }
  unsetenv("SLURM_STEP_NUM_TASKS");
  unsetenv("SLURM_PROCID");
}

}  // namespace
}  // namespace sojourn::detail
