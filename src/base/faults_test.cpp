// SPDX-License-Identifier: Apache-2.0
#include "base/faults.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <thread>
#include <vector>

#include "sojourn/detail/asan.hpp"

namespace {

using namespace sojourn::detail;

const std::size_t page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// Pages that allow no access at first. Their handler allows the access that has faulted.
class pages {
 public:
  explicit pages(std::size_t count) : bytes_(count * page_bytes) {
    void* memory = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) start_ = static_cast<volatile char*>(memory);
  }
  ~pages() {
    if (registered_) remove_fault_range(low());
    munmap(const_cast<char*>(start_), bytes_);
  }
  pages(const pages&) = delete;
  pages& operator=(const pages&) = delete;

  std::uint64_t low() const { return reinterpret_cast<std::uint64_t>(start_); }
  std::uint64_t high() const { return low() + bytes_; }
  volatile char& operator[](std::size_t at) { return start_[at]; }

  bool add(fault_handler handler = mend) {
    return registered_ = add_fault_range(low(), high(), handler, this);
  }
  void allow(int protection) { mprotect(const_cast<char*>(start_), bytes_, protection); }

  static bool mend(const page_fault& fault, void* data) {
    auto* mine = static_cast<pages*>(data);
    mine->last = fault;
    ++mine->faults;
    const std::uint64_t page = fault.address & ~(std::uint64_t{page_bytes} - 1);
    const bool reads = fault.access == fault_access::read;
    errno = EDOM;
    return mprotect(reinterpret_cast<void*>(page), page_bytes,
                    reads ? PROT_READ : PROT_READ | PROT_WRITE) == 0;
  }

  page_fault last{};
  std::atomic<int> faults = 0;

 private:
  volatile char* start_ = nullptr;
  std::size_t bytes_;
  bool registered_ = false;
};

/// Reports a fault that nobody has repaired, as the runtime does.
void say_and_exit(int signal, siginfo_t*, void*) {
  (void)!write(2, signal == SIGSEGV ? "nobody mends SIGSEGV\n" : "nobody mends SIGBUS\n",
               signal == SIGSEGV ? 21 : 20);
  _exit(3);
}

// Tests of what ends the process run in a new process each, in which no range was registered yet.
class faults : public testing::Test {
 protected:
  faults() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  /// A sanitizer may handle these signals.
  static void begin_unhandled() {
    for (int s : {SIGSEGV, SIGBUS}) signal(s, SIG_DFL);
  }
};
using faults_DeathTest = faults;

TEST_F(faults, a_read_goes_on_once_the_handler_has_mended_it) {
  pages p(2);
  ASSERT_TRUE(p.add());
  errno = 0;
  EXPECT_EQ(p[page_bytes + 7], 0);
  EXPECT_EQ(errno, 0);
  EXPECT_EQ(p.faults, 1);
  EXPECT_EQ(p.last.address, p.low() + page_bytes + 7);
  EXPECT_NE(p.last.access, fault_access::write);
  EXPECT_EQ(p[page_bytes], 0);
  EXPECT_EQ(p.faults, 1) << "the page is open";
}

TEST_F(faults, a_write_goes_on_and_is_told_from_a_read) {
  pages p(1);
  ASSERT_TRUE(p.add());
  p.allow(PROT_READ);
  EXPECT_EQ(p[3], 0);
  EXPECT_EQ(p.faults, 0);
  p[3] = 5;
  EXPECT_EQ(p[3], 5);
  EXPECT_EQ(p.faults, 1);
#if defined(__x86_64__)
  EXPECT_EQ(p.last.access, fault_access::write);
#endif
}

TEST_F(faults, a_page_beyond_the_end_of_its_file_asks_too) {
  const int file = memfd_create("sojourn-faults", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  void* memory = mmap(nullptr, page_bytes, PROT_READ, MAP_SHARED, file, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto low = reinterpret_cast<std::uint64_t>(memory);
  const auto lengthen = [](const page_fault&, void* data) {
    return ftruncate(*static_cast<const int*>(data), static_cast<off_t>(page_bytes)) == 0;
  };
  ASSERT_TRUE(add_fault_range(low, low + page_bytes, lengthen, const_cast<int*>(&file)));
  EXPECT_EQ(*static_cast<volatile char*>(memory), 0);
  remove_fault_range(low);
  munmap(memory, page_bytes);
  close(file);
}

TEST_F(faults, a_handler_may_fault_in_the_range_of_another) {
  static pages* inner;
  pages first(1);
  pages second(1);
  inner = &second;
  ASSERT_TRUE(second.add());
  ASSERT_TRUE(first.add([](const page_fault& fault, void* data) {
    (*inner)[1] = 9;
    return pages::mend(fault, data);
  }));
  first[0] = 4;
  EXPECT_EQ(first[0], 4);
  EXPECT_EQ(second[1], 9);
  EXPECT_EQ(first.faults, 1);
  EXPECT_EQ(second.faults, 1);
}

TEST_F(faults, ranges_that_overlap_are_refused) {
  pages p(4);
  const auto page = [&](std::size_t n) { return p.low() + n * page_bytes; };
  const auto may_add = [&](std::uint64_t low, std::uint64_t high) {
    const bool added = add_fault_range(low, high, pages::mend, &p);
    if (added) remove_fault_range(low);
    return added;
  };
  ASSERT_TRUE(add_fault_range(page(1), page(3), pages::mend, &p));
  EXPECT_FALSE(may_add(page(1), page(3))) << "the same";
  EXPECT_FALSE(may_add(page(0), page(2))) << "its beginning";
  EXPECT_FALSE(may_add(page(2), page(4))) << "its end";
  EXPECT_FALSE(may_add(page(1) + 8, page(1) + 16)) << "within it";
  EXPECT_FALSE(may_add(page(0), page(4))) << "around it";
  EXPECT_TRUE(may_add(page(0), page(1)));
  EXPECT_TRUE(may_add(page(3), page(4)));
  remove_fault_range(page(1));
  EXPECT_TRUE(may_add(page(0), page(4)));
}

TEST_F(faults, there_is_room_for_so_many_ranges) {
  pages p(fault_ranges_max + 1);
  const auto page = [&](std::size_t n) { return p.low() + n * page_bytes; };
  std::size_t count = 0;
  while (count <= fault_ranges_max &&
         add_fault_range(page(count), page(count + 1), pages::mend, &p)) {
    ++count;
  }
  EXPECT_EQ(count, fault_ranges_max);
  p[(count - 1) * page_bytes] = 1;
  EXPECT_EQ(p.faults, 1);
  for (std::size_t n = 0; n < count; ++n) remove_fault_range(page(n));
}

TEST_F(faults, are_mended_while_other_ranges_come_and_go) {
  // These lie above the other pages: if the end of one of them were seen without its beginning, its
  // range would contain the other pages.
  pages brief[3] = {pages(1), pages(1), pages(1)};
  pages p(1);
  ASSERT_TRUE(p.add());
  std::atomic<bool> ends = false;
  std::atomic<int> changes = 0;
  std::thread other([&] {
    while (!ends) {
      for (pages& b : brief) add_fault_range(b.low(), b.high(), pages::mend, &b);
      for (pages& b : brief) remove_fault_range(b.low());
      ++changes;
    }
  });
  while (changes == 0) std::this_thread::yield();
  constexpr int count = 5000;
  for (int i = 0; i < count; ++i) {
    p.allow(PROT_NONE);
    p[0] = static_cast<char>(i);
  }
  ends = true;
  other.join();
  EXPECT_EQ(p.faults, count);
}

TEST_F(faults, of_several_threads_are_mended_at_once) {
  pages p(8);
  ASSERT_TRUE(p.add());
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < 8; ++n) threads.emplace_back([&p, n] { p[n * page_bytes] = 1; });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(p.faults, 8);
}

TEST_F(faults, an_attempt_ends_where_it_faults) {
  pages p(1);
  static int steps;
  ASSERT_TRUE(p.add());
  steps = 0;
  const auto touch = [](void* at) {
    ++steps;
    *static_cast<volatile char*>(at) = 1;
    ++steps;
  };
  EXPECT_FALSE(survives_faults(touch, const_cast<char*>(&p[0])));
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(p.faults, 0) << "no other handler is asked";
  char here = 0;
  EXPECT_TRUE(survives_faults(touch, &here));
  EXPECT_EQ(here, 1);
  p[0] = 2;
  EXPECT_EQ(p.faults, 1) << "afterwards it is";
}

TEST_F(faults, an_attempt_may_be_part_of_another) {
  pages p(1);
  ASSERT_TRUE(p.add());
  const auto both = [](void* at) {
    const auto touch = [](void* there) { *static_cast<volatile char*>(there) = 1; };
    if (!survives_faults(touch, at)) touch(at);
  };
  EXPECT_FALSE(survives_faults(both, const_cast<char*>(&p[0])));
  EXPECT_EQ(p.faults, 0);
}

TEST_F(faults_DeathTest, nobody_is_asked_about_a_fault_outside) {
  const auto fault_outside = [] {
    begin_unhandled();
    report_other_faults(say_and_exit);
    pages asked(1);
    pages other(1);
    if (!asked.add()) _exit(0);
    other[0] = 1;
    _exit(0);
  };
  EXPECT_EXIT(fault_outside(), testing::ExitedWithCode(3), "nobody mends SIGSEGV");
}

TEST_F(faults_DeathTest, a_fault_that_the_handler_leaves_is_reported) {
  const auto fault_within = [] {
    begin_unhandled();
    pages asked(1);
    if (!asked.add([](const page_fault&, void*) { return false; })) _exit(0);
    report_other_faults(say_and_exit);
    asked[0] = 1;
    _exit(0);
  };
  EXPECT_EXIT(fault_within(), testing::ExitedWithCode(3), "nobody mends SIGSEGV");
}

TEST_F(faults_DeathTest, a_range_that_was_removed_is_not_asked_about) {
  const auto fault_late = [] {
    begin_unhandled();
    report_other_faults(say_and_exit);
    pages asked(1);
    if (!add_fault_range(asked.low(), asked.high(), pages::mend, &asked)) _exit(0);
    asked[0] = 1;
    remove_fault_range(asked.low());
    asked.allow(PROT_NONE);
    asked[0] = 1;
    _exit(0);
  };
  EXPECT_EXIT(fault_late(), testing::ExitedWithCode(3), "nobody mends SIGSEGV");
}

TEST_F(faults_DeathTest, a_signal_that_was_sent_is_reported) {
  const auto send = [] {
    begin_unhandled();
    report_other_faults(say_and_exit);
    raise(SIGBUS);
    _exit(0);
  };
  EXPECT_EXIT(send(), testing::ExitedWithCode(3), "nobody mends SIGBUS");
}

TEST_F(faults_DeathTest, without_a_reporter_they_end_the_process) {
  const auto fault_outside = [] {
    begin_unhandled();
    pages asked(1);
    if (!asked.add()) _exit(0);
    std::fputs("touches\n", stderr);
    *reinterpret_cast<volatile char*>(page_bytes - 1) = 1;
    _exit(0);
  };
  EXPECT_DEATH(fault_outside(), "touches");
}

TEST_F(faults_DeathTest, a_handler_of_the_program_gets_what_no_range_takes) {
  const auto fault = [] {
    struct sigaction own{};
    own.sa_handler = [](int) {
      (void)!write(2, "the program's own\n", 18);
      _exit(4);
    };
    sigaction(SIGSEGV, &own, nullptr);
    report_other_faults(say_and_exit);
    pages asked(1);
    if (!asked.add()) _exit(0);
    asked[0] = 1;
    if (asked.faults != 1) _exit(0);
    pages other(1);
    other[0] = 1;
    _exit(0);
  };
  EXPECT_EXIT(fault(), testing::ExitedWithCode(4), "the program's own");
}

#if !SOJOURN_ASAN  // the program calls functions of that sanitizer

void tells_and_exits(int) {
  (void)!write(2, "the program's own\n", 18);
  _exit(4);
}

TEST_F(faults_DeathTest, a_handler_that_the_program_installs_later_gets_what_no_range_takes) {
  const auto fault = [](auto install) {
    begin_unhandled();
    report_other_faults(say_and_exit);
    pages asked(1);
    if (!asked.add()) _exit(0);
    install();
    asked[0] = 1;
    if (asked.faults != 1) _exit(0);
    pages other(1);
    other[0] = 1;
    _exit(0);
  };
  EXPECT_EXIT(fault([] {
                struct sigaction own{};
                own.sa_handler = tells_and_exits;
                sigaction(SIGSEGV, &own, nullptr);
              }),
              testing::ExitedWithCode(4), "the program's own");
  EXPECT_EXIT(fault([] { signal(SIGSEGV, tells_and_exits); }), testing::ExitedWithCode(4),
              "the program's own");
  EXPECT_EXIT(fault([] {
                signal(SIGSEGV, tells_and_exits);
                signal(SIGSEGV, SIG_DFL);
              }),
              testing::ExitedWithCode(3), "nobody mends SIGSEGV");
}

TEST_F(faults_DeathTest, what_the_program_has_installed_is_told) {
  const auto ask = [] {
    begin_unhandled();
    report_other_faults(say_and_exit);
    struct sigaction own{};
    own.sa_handler = tells_and_exits;
    own.sa_flags = SA_RESTART;
    struct sigaction before{};
    struct sigaction now{};
    const bool told = sigaction(SIGBUS, &own, &before) == 0 && before.sa_handler == SIG_DFL &&
                      sigaction(SIGBUS, nullptr, &now) == 0 && now.sa_handler == tells_and_exits &&
                      now.sa_flags == SA_RESTART && signal(SIGBUS, SIG_IGN) == tells_and_exits &&
                      signal(SIGBUS, SIG_DFL) == SIG_IGN;
    _exit(told ? 5 : 6);
  };
  EXPECT_EXIT(ask(), testing::ExitedWithCode(5), "");
}

TEST_F(faults_DeathTest, a_handler_of_the_program_runs_as_it_asked_to) {
  const auto fault_twice = [] {
    begin_unhandled();
    report_other_faults(say_and_exit);
    static pages* page;
    pages other(1);
    page = &other;
    struct sigaction own{};
    own.sa_sigaction = [](int, siginfo_t* info, void*) {
      sigset_t blocked;
      pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
      if (reinterpret_cast<std::uint64_t>(info->si_addr) != page->low() + 8 ||
          sigismember(&blocked, SIGUSR1) == 0 || sigismember(&blocked, SIGSEGV) == 0)
        _exit(0);
      page->allow(PROT_READ | PROT_WRITE);
    };
    own.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
    sigaddset(&own.sa_mask, SIGUSR1);
    sigaction(SIGSEGV, &own, nullptr);
    other[8] = 1;
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    if (sigismember(&blocked, SIGUSR1) != 0 || sigismember(&blocked, SIGSEGV) != 0) _exit(0);
    other.allow(PROT_NONE);
    other[8] = 1;  // the handler was to be called only once
    _exit(0);
  };
  EXPECT_EXIT(fault_twice(), testing::ExitedWithCode(3), "nobody mends SIGSEGV");
}

#endif

}  // namespace
