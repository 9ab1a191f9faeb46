// SPDX-License-Identifier: Apache-2.0
// What threads that the program makes itself post is run by the rank, in order, also when it
// sleeps.
#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

using namespace sojourn;
using namespace std::chrono_literals;

namespace {

long arrived = 0;

void what_threads_post_runs_once_each_in_their_order() {
  static constexpr int threads = 4;
  static constexpr int each = 2000;
  std::array<int, threads> next{};
  int ended = 0;
  semaphore all(0);
  std::vector<std::thread> posting;
  for (int t = 0; t < threads; ++t) {
    posting.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        post([&next, &ended, &all, t, i] {
          CHECK_EQUAL(next[static_cast<std::size_t>(t)]++, i);
          if (++ended == threads * each) all.release();
        });
      }
    });
  }
  all.acquire();
  for (std::thread& t : posting) t.join();
  for (const int n : next) CHECK_EQUAL(n, each);
}

void a_posted_function_is_a_fiber_that_calls_and_waits() {
  const rank_t other = (rank_me() + 1) % rank_count();
  std::promise<int> answer;
  semaphore done(0);
  std::thread asking([&] {
    post([&] {
      yield();
      answer.set_value(rpc(other, [](int n) { return n + 1; }, 41).get());
    });
    CHECK_EQUAL(answer.get_future().get(), 42);
    post([&] { done.release(); });
  });
  done.acquire();
  asking.join();
}

void functions_go_to_other_ranks() {
  const rank_t other = (rank_me() + 1) % rank_count();
  arrived = 0;
  barrier();
  std::thread sending([&] {
    for (int i = 1; i <= 100; ++i) {
      post(
          other,
          [](int n, const std::string& text) { arrived += n + static_cast<long>(text.size()); }, i,
          std::string("abc"));
    }
  });
  while (arrived < 5050 + 300) sleep_for(100us);
  sending.join();
  post(other, [](const std::unique_ptr<int>& n) { arrived += *n; }, std::make_unique<int>(7));
  while (arrived != 5050 + 307) yield();
  barrier();
}

// Each rank falls asleep with nothing to wait for but its thread: that is no deadlock.
void a_rank_that_sleeps_is_woken_and_not_taken_for_deadlocked() {
  for (int i = 0; i < 5; ++i) {
    semaphore woken(0);
    std::thread late([&] {
      std::this_thread::sleep_for(30ms);
      post([&] { woken.release(); });
    });
    woken.acquire();
    late.join();
  }
}

void what_it_holds_is_moved_in_and_destroyed_by_the_rank() {
  static std::atomic<int> alive;
  struct counted {
    counted() { ++alive; }
    counted(const counted&) = delete;
    ~counted() { --alive; }
  };
  alive = 0;
  semaphore done(0);
  std::thread posting([&] {
    auto only = std::make_unique<counted>();
    post([&done, only = std::move(only)] {
      yield();
      CHECK_EQUAL(alive.load(), 1);
      done.release();
    });
  });
  done.acquire();
  posting.join();
  while (alive.load() != 0) yield();
}

void fibers_may_post_too() {
  int order = 0;
  latch both(2);
  post([&] {
    CHECK_EQUAL(order++, 1);
    both.count_down();
  });
  post([&] {
    CHECK_EQUAL(order++, 2);
    both.count_down();
  });
  CHECK_EQUAL(order++, 0);
  both.wait();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    what_threads_post_runs_once_each_in_their_order();
    a_posted_function_is_a_fiber_that_calls_and_waits();
    functions_go_to_other_ranks();
    a_rank_that_sleeps_is_woken_and_not_taken_for_deadlocked();
    what_it_holds_is_moved_in_and_destroyed_by_the_rank();
    fibers_may_post_too();
    return check::failures == 0 ? 0 : 1;
  });
}
