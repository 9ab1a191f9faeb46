// SPDX-License-Identifier: Apache-2.0
// The contract of transport.hpp with ranks that run at the same time, as threads and as processes.
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "base/clock.hpp"
#include "far_job.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/waiting/clock.hpp"
#include "transports.hpp"

namespace {

using namespace conformance;
using namespace std::chrono_literals;

template <class Job>
struct concurrent_transport : transport_test<Job> {};
using jobs = testing::Types<shm_job, shm_job_near_wrap, shm_job_near_look, far_job,
                            far_job_of_unequal_hosts, far_job_near_wrap, far_sealed_job, ucx_job>;
struct job_name {
  template <class Job>
  static std::string GetName(int) {
    return Job::name;
  }
};
TYPED_TEST_SUITE(concurrent_transport, jobs, job_name);

bool nothing_else() { return false; }

double thread_cpu_seconds() {
  rusage u;
  getrusage(RUSAGE_THREAD, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

TYPED_TEST(concurrent_transport, a_rank_that_waits_sleeps_and_a_message_wakes_it) {
  TypeParam job(2);
  std::atomic<double> used{1};
  std::atomic<std::size_t> got{0};
  std::thread sleeper([&] {
    double before = thread_cpu_seconds();
    job.at(1).wait(nothing_else);
    used = thread_cpu_seconds() - before;
    got = poll(job.at(1)).size();
  });
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(used, 1) << "it waits until something comes";
  ASSERT_TRUE(send(job.at(0), 1, message_class::request, 1, 8));
  sleeper.join();
  EXPECT_EQ(got, 1u);
  EXPECT_LT(used, 0.05);
}

TYPED_TEST(concurrent_transport, others_see_that_a_rank_sleeps_and_wake_it) {
  TypeParam job(2);
  const sleepers asleep = job.asleep(1);
  EXPECT_FALSE(job.asleep(0).is_asleep(0));
  EXPECT_FALSE(job.asleep(0).wake(0));
  std::atomic<bool> over = false;
  std::thread sleeper([&] {
    job.at(1).wait(nothing_else);
    over = true;
  });
  while (!asleep.is_asleep(1)) std::this_thread::yield();
  EXPECT_FALSE(over);
  EXPECT_TRUE(asleep.wake(1));
  sleeper.join();
  EXPECT_FALSE(asleep.is_asleep(1));
  EXPECT_FALSE(job.asleep(0).is_asleep(0));
}

TYPED_TEST(concurrent_transport, wait_returns_at_once_for_what_is_here) {
  TypeParam job(2);
  ASSERT_TRUE(send(job.at(0), 1, message_class::reply, 1, 8));
  job.at(1).wait(nothing_else);
  EXPECT_EQ(poll(job.at(1)).size(), 1u);
  job.at(1).wait([] { return true; });
  EXPECT_FALSE(job.at(1).anything_arrived());
}

TYPED_TEST(concurrent_transport, a_rank_sleeps_until_its_deadline_and_no_longer) {
  TypeParam job(2);
  static int falls;
  falls = 0;
  for (std::uint64_t wait_ns :
       {std::uint64_t{0}, std::uint64_t{20'000}, std::uint64_t{50'000'000}}) {
    std::uint64_t deadline = sojourn::now_ns() + wait_ns;
    double before = thread_cpu_seconds();
    job.at(1).wait(
        nothing_else, [](bool falls_asleep) { falls += falls_asleep ? 1 : -1; }, deadline);
    EXPECT_GE(sojourn::now_ns(), deadline);
    EXPECT_EQ(falls, 0);
    EXPECT_LT(thread_cpu_seconds() - before, 0.02);
  }
  // What comes before the deadline wakes it.
  std::thread sleeper(
      [&] { job.at(1).wait(nothing_else, nullptr, sojourn::now_ns() + 600'000'000'000); });
  std::this_thread::sleep_for(50ms);
  ASSERT_TRUE(send(job.at(0), 1, message_class::request, 1, 8));
  sleeper.join();
  EXPECT_EQ(poll(job.at(1)).size(), 1u);
  // The word that it slept on is as it was: the next sleep ends when it should.
  job.at(1).wait(nothing_else, nullptr, sojourn::now_ns() + 1'000'000);
  EXPECT_EQ(poll(job.at(1)).size(), 0u);
}

TYPED_TEST(concurrent_transport, a_rank_sleeps_until_its_deadline_by_whatever_clock) {
  constexpr std::uint64_t hour_ns = 3'600'000'000'000;
  const sojourn::detail::test_clock clock(5);
  TypeParam job(2);
  job.at(1).wait(nothing_else, nullptr, 5 + hour_ns);
  EXPECT_EQ(sojourn::now_ns(), 5 + hour_ns);
  EXPECT_FALSE(job.asleep(1).is_asleep(1));
}

// What a waiting sender looks at.
void* waiting_job;
template <class Job>
bool room_again() {
  return static_cast<Job*>(waiting_job)->at(0).has_room(1, message_class::request, 1000);
}

TYPED_TEST(concurrent_transport, a_sender_that_waits_for_room_is_woken_by_consume) {
  TypeParam job(2);
  waiting_job = &job;
  std::uint64_t sent = 0;
  while (send(job.at(0), 1, message_class::request, sent, 1000)) ++sent;
  std::thread sender([&] {
    job.at(0).wait(room_again<TypeParam>);
    EXPECT_TRUE(send(job.at(0), 1, message_class::request, sent, 1000));
  });
  std::this_thread::sleep_for(100ms);
  // The sender may be faster than this poll. Between hosts a part of the messages is still with it.
  auto got = poll(job.at(1));
  EXPECT_FALSE(got.empty());
  sender.join();
  for (auto& m : poll_all(job, 1)) got.push_back(m);
  ASSERT_EQ(got.size(), sent + 1);
  EXPECT_EQ(got.back().ticket, sent);
}

/// Rank `me` answers requests until one says to end.
void serve(transport& at, int client) {
  for (bool over = false; !over;) {
    at.wait(nothing_else);
    for (const auto& m : poll(at)) {
      if (m.ticket == ~std::uint64_t{0}) {
        over = true;
        continue;
      }
      EXPECT_TRUE(content_is_right(m));
      while (!send(at, client, message_class::reply, m.ticket, m.bytes.size())) sched_yield();
    }
  }
}

/// Sends requests of all sizes, at most 64 unanswered, and checks that answers come in their order.
void ask(transport& at, int server, std::uint64_t requests, unsigned seed, bool pauses) {
  std::minstd_rand random(seed);
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
  std::uint64_t wrong = 0;
  while (answered < requests) {
    while (sent < requests && sent - answered < 64) {
      std::size_t bytes = random() % 100 == 0 ? random() % 300'000 : random() % 200;
      if (!send(at, server, message_class::request, sent, bytes)) break;
      ++sent;
    }
    // Now and then both sides fall asleep.
    if (pauses && random() % 100 == 0) std::this_thread::sleep_for(200us);
    at.wait(nothing_else);
    for (const auto& m : poll(at)) wrong += m.ticket != answered++ || !content_is_right(m);
  }
  EXPECT_EQ(wrong, 0u);
}
void end(transport& at, int server) {
  while (!send(at, server, message_class::request, ~std::uint64_t{0}, 0)) sched_yield();
}

TYPED_TEST(concurrent_transport, no_wake_up_is_lost_between_threads) {
  TypeParam job(2);
  std::thread server([&] { serve(job.at(1), 0); });
  ask(job.at(0), 1, 20'000, 3, true);
  end(job.at(0), 1);
  server.join();
}

TYPED_TEST(concurrent_transport, every_rank_to_every_other_keeps_its_order) {
  constexpr int ranks = 4;
  constexpr std::uint64_t each = 5000;
  TypeParam job(ranks);
  std::vector<std::thread> threads;
  // Of what does not fit the way to another host a part leaves when its sender polls.
  std::atomic<int> ranks_at_work = ranks;
  for (int me = 0; me < ranks; ++me) {
    threads.emplace_back([&, me] {
      std::vector<std::uint64_t> sent(ranks), got(ranks);
      std::minstd_rand random(static_cast<unsigned>(me + 1));
      std::uint64_t wrong = 0;
      for (std::uint64_t arrived = 0, left = each * ranks; arrived < each * ranks || left > 0;) {
        for (int to = 0; to < ranks; ++to) {
          auto& n = sent[static_cast<std::size_t>(to)];
          if (n < each && send(job.at(me), to, message_class::request, n, random() % 400)) {
            ++n;
            --left;
          }
        }
        auto here = poll(job.at(me), 8);
        for (const auto& m : here) {
          wrong += m.ticket != got[static_cast<std::size_t>(m.source)]++ || !content_is_right(m);
        }
        arrived += here.size();
        if (here.empty()) std::this_thread::yield();
      }
      EXPECT_EQ(wrong, 0u);
      for (--ranks_at_work; ranks_at_work != 0; std::this_thread::yield())
        EXPECT_EQ(poll(job.at(me)).size(), 0u);
    });
  }
  for (auto& t : threads) t.join();
}

TYPED_TEST(concurrent_transport, processes_exchange_messages_and_copy_each_others_memory) {
  if constexpr (std::is_same_v<TypeParam, ucx_job>)
    GTEST_SKIP() << "what UCX has made does not outlive fork()";
  TypeParam job(2);
  constexpr std::ptrdiff_t bytes = 3'000'000;
  // What the child found in its memory: its exit status.
  enum { written, untouched, faulty };
  // At one address in both processes, with other content.
  std::vector<unsigned char> memory(bytes, 7);
  auto address = reinterpret_cast<std::uint64_t>(memory.data());
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::fill(memory.begin(), memory.end(), static_cast<unsigned char>(9));
    job.attach_again(1);
    serve(job.at(1), 0);
    if (testing::Test::HasFailure()) _exit(faulty);
    const bool begins = memory[0] == 9;
    const auto fives = std::count(memory.begin() + 1, memory.end(), 5);
    if (begins && fives == bytes - 1) _exit(written);
    _exit(begins && fives == 0 ? untouched : faulty);
  }
  job.attach_again(0);
  ask(job.at(0), 1, 3000, 9, true);

  // The system lets a process read its child's memory, or does not: asked without the transport.
  unsigned char first = 0;
  iovec here{&first, 1};
  iovec there{memory.data(), 1};
  const bool may = TypeParam::copies_memory && process_vm_readv(child, &here, 1, &there, 1, 0) == 1;

  std::vector<unsigned char> seen(bytes, 0);
  bool may_read = job.at(0).read_memory(1, address, seen.data(), bytes);
  EXPECT_EQ(may_read, may);
  EXPECT_EQ(seen, std::vector<unsigned char>(bytes, may_read ? 9 : 0));
  std::vector<unsigned char> fives(bytes - 1, 5);
  bool may_write = job.at(0).write_memory(1, address + 1, fives.data(), bytes - 1);
  EXPECT_EQ(may_read, may_write);
  if (may_read) {
    EXPECT_THROW(job.at(0).read_memory(1, 4096, seen.data(), 8), sojourn::error) << "no page there";
  }
  EXPECT_EQ(memory[1], 7) << "this process's own is another";
  end(job.at(0), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), may ? written : untouched);
}

}  // namespace
