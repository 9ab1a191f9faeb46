// SPDX-License-Identifier: Apache-2.0
// Fibers of one rank that wait for each other, and for a time: docs/synchronisation.md.
#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <vector>

using namespace sojourn;
using namespace std::chrono_literals;

// An object that serves all ranks. Its methods run where it lives, one fiber a call.
class mailbox {
 public:
  void put(long letter) {
    std::lock_guard lock(guard_);
    letters_ += letter;
    ++waiting_;
    arrived_.notify_one();
  }

  long take(long wanted) {
    std::unique_lock lock(guard_);
    arrived_.wait(lock, [&] { return waiting_ >= wanted; });
    waiting_ = 0;
    return letters_;
  }

  std::optional<long> take_within(long wanted, std::chrono::milliseconds patience) {
    std::unique_lock lock(guard_);
    if (!arrived_.wait_for(lock, patience, [&] { return waiting_ >= wanted; })) return {};
    waiting_ = 0;
    return letters_;
  }

 private:
  mutex guard_;
  condition_variable arrived_;
  long waiting_ = 0;
  long letters_ = 0;
};

// Each rank has its own.
semaphore desks(2);
int at_work = 0;
int most_at_work = 0;

long work_at_a_desk(long n) {
  desks.acquire();
  most_at_work = std::max(most_at_work, ++at_work);
  sleep_for(1ms);  // the rank goes on with other fibers
  --at_work;
  desks.release();
  return n;
}

mutex ledger;

bool with_the_ledger() {
  std::lock_guard lock(ledger);
  return migrate_to(rank_count() - 1);  // refused: these frames have locked it
}

bool without_it() {
  ledger.lock();
  ledger.unlock();
  return migrate_to(rank_count() - 1);
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    auto box = broadcast(make<mailbox>(rank_count() - 1));
    if (rank_me() == 0) {
      // Waits there, without holding up that rank.
      auto all = box.async<&mailbox::take>(via::rpc, static_cast<long>(rank_count()));
      auto began = now_ns();
      sleep_for(5ms);
      bool rested = now_ns() - began >= 5'000'000;
      box.call<&mailbox::put>(via::rpc, 100L);
      std::printf("rested: %s\n", rested ? "yes" : "no");
      barrier();
      std::printf("letters: %ld\n", all.get());
      bool late = !box.call<&mailbox::take_within>(via::rpc, 1L, 2ms).has_value();
      std::printf("nothing more within 2 ms: %s\n", late ? "yes" : "no");

      std::vector<future<long>> jobs;
      for (long i = 0; i < 6; ++i) jobs.push_back(rpc(0, work_at_a_desk, i));
      long done = 0;
      for (auto& job : jobs) done += job.get();
      std::printf("jobs: %ld, at most %d at once\n", done, most_at_work);

      std::printf("moves with the ledger: %s, without: %s\n",
                  activate(with_the_ledger) ? "yes" : "no", activate(without_it) ? "yes" : "no");
    } else {
      box.call<&mailbox::put>(via::rpc, static_cast<long>(rank_me()));
      barrier();
    }
  });
}
