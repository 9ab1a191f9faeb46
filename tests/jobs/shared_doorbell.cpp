// SPDX-License-Identifier: Apache-2.0
// A rank that computes answers questions about shared memory, and what it computes stays right. It
// computes until a process signal tells it that the answers have come, so a claim hangs where it
// does not answer.
#include <signal.h>
#include <unistd.h>
#include <sojourn/sojourn.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

using namespace sojourn;

constexpr std::size_t page_longs = 4096 / sizeof(long);

/// The same address on all ranks: allocated on one.
template <class T = long>
T* alloc_on(rank_t rank, std::size_t count) {
  std::uintptr_t at = 0;
  if (rank_me() == rank) at = reinterpret_cast<std::uintptr_t>(shared::alloc<T>(count));
  return reinterpret_cast<T*>(broadcast(at, rank));
}

/// What the rank keeps that allocates it.
struct objects {
  shared::atomic<long> count;
  shared::flag was_set, is_set_meanwhile;
  shared::counted_barrier of_two;
  shared::mutex guard;
  shared::condition_variable prepared;
  bool is_prepared;
};

/// All that one rank can ask of another about them; with the help of a second fiber.
void use(objects& o) {
  CHECK_EQUAL(o.count.fetch_add(3), 4);
  CHECK_EQUAL(o.count.load(), 7);
  o.was_set.wait();
  o.is_set_meanwhile.set();
  thread other = spawn(
      [](shared::pointer<objects> all) {
        all->of_two.arrive_and_wait(2);
        all->guard.lock();
        all->prepared.wait(all->guard, [&] { return all->is_prepared; });
        all->guard.unlock();
      },
      shared::pointer<objects>(&o));
  o.of_two.arrive_and_wait(2);
  for (int i = 0; i < 3; ++i) yield();
  o.guard.lock();
  o.is_prepared = true;
  o.prepared.notify_all();
  o.guard.unlock();
  other.join();
}

volatile sig_atomic_t told = 0;
shared::mutex guard;
shared::mutex sums_guard;

// --- What the last rank computes. Each load returns how many of its results are wrong.

int arithmetic(int i) {
  std::uint64_t x = static_cast<std::uint64_t>(i) + 1, sum = 0;
  for (std::uint64_t n = 0; n < 1000; ++n) sum += n * x;
  return sum == x * 499500 ? 0 : 1;
}

int allocation(int i) {
  int wrong = 0;
  std::vector<std::vector<int>> all;
  for (std::size_t n = 0; n < 50; ++n) all.emplace_back(n * 7 % 300 + 1, i);
  for (const auto& v : all) wrong += v.back() != i;
  return wrong;
}

int copying(int i) {
  static char from[20000], to[20000];
  std::memset(from, i & 0x7f, sizeof from);
  std::memcpy(to, from, sizeof to);
  return std::memcmp(from, to, sizeof to) == 0 ? 0 : 1;
}

int vectors(int i) {
  double v[64], sum = 0;
  for (int n = 0; n < 64; ++n) v[n] = n + i;
  for (int round = 0; round < 20; ++round)
    for (double& x : v) x = x * 2 - x;
  for (const double x : v) sum += x;
  return sum == 64.0 * i + 2016 && std::sqrt(v[5] * v[5]) == v[5] ? 0 : 1;
}

int exceptions(int i) {
  try {
    if (i >= 0) throw std::runtime_error(std::to_string(i));
  } catch (const std::runtime_error& e) {
    return e.what() == std::to_string(i) ? 0 : 1;
  }
  return 1;
}

int text(int i) {
  static std::FILE* nowhere = std::fopen("/dev/null", "w");
  char line[64];
  std::snprintf(line, sizeof line, "%d %.3f", i, i / 8.0);
  std::fprintf(nowhere, "%s\n", line);
  return std::strtol(line, nullptr, 10) == i ? 0 : 1;
}

int own_calls(int i) {
  return rpc(rank_me(), [](int n) { return n + 1; }, i).get() == i + 1 ? 0 : 1;
}

int long_messages(int i) {
  const std::vector<int> values(3000, i);
  return rpc(
             0, [](const std::vector<int>& v) { return v.back() + static_cast<int>(v.size()); },
             values)
                     .get() == i + 3000
             ? 0
             : 1;
}

struct work {
  const char* name;
  int (*run)(int);
};
constexpr work loads[] = {
    {"arithmetic", arithmetic},     {"malloc and free", allocation}, {"memcpy", copying},
    {"vectors", vectors},           {"exceptions", exceptions},      {"stdio", text},
    {"calls to itself", own_calls}, {"long messages", long_messages}};

/// Rank 0 takes a mutex that the last rank had last, and then stores to pages that the last rank
/// has, and uses atomics and other objects that it keeps, while that one computes.
void a_rank_answers_in(const work& l) {
  constexpr std::size_t count = 12 * page_longs;
  const rank_t last = rank_count() - 1;
  long* values = alloc_on(last, count);
  auto* all_objects = alloc_on<objects>(last, 1);
  told = 0;
  const auto computing = broadcast(static_cast<std::int64_t>(getpid()), last);
  if (rank_me() == last) {
    guard.lock();
    for (std::size_t n = 0; n < count; ++n) values[n] = static_cast<long>(n);
    guard.unlock();
    all_objects->count.store(4);
    all_objects->was_set.set();
  }
  sojourn::barrier();
  if (rank_me() == last) {
    int wrong = 0;
    for (int i = 0; told == 0; i = (i + 1) % 1000) wrong += l.run(i);
    CHECK(wrong == 0);
  }
  if (rank_me() == 0) {
    guard.lock();
    long sum = 0;
    for (std::size_t n = 0; n < count; ++n) sum += values[n]++;
    guard.unlock();
    constexpr auto all = static_cast<long>(count);
    CHECK(sum == all * (all - 1) / 2);
    use(*all_objects);
    kill(static_cast<pid_t>(computing), SIGUSR2);
  }
  shared::barrier();
  CHECK(values[count - 1] == static_cast<long>(count));
  CHECK(all_objects->is_set_meanwhile.is_set());
  shared::barrier();
}

/// Rank 0 loads from pages which the last rank has, while that one computes and calls of rank 0
/// wait in a bundle. No other fiber of rank 0 runs then, and no timer is looked at.
void a_rank_answers_one_that_bundles() {
  const rank_t last = rank_count() - 1;
  long* values = alloc_on(last, 8 * page_longs);
  told = 0;
  const auto computing = broadcast(static_cast<std::int64_t>(getpid()), last);
  for (std::size_t n = 0; rank_me() == last && n < 8 * page_longs; ++n) values[n] = 1;
  sojourn::barrier();
  if (rank_me() == last) {
    int wrong = 0;
    for (int i = 0; told == 0; i = (i + 1) % 1000) wrong += arithmetic(i);
    CHECK(wrong == 0);
  } else if (rank_me() == 0) {
    const aggregated bundles;
    rpc_ff(last, [] {});
    long found = 0;
    for (std::size_t n = 0; n < 8 * page_longs; ++n) found += values[n];
    kill(static_cast<pid_t>(computing), SIGUSR2);
    CHECK_EQUAL(found, static_cast<long>(8 * page_longs));
  }
  shared::barrier();
}

/// The last rank stores 5 under the mutex, so that it has both. Returns its process.
pid_t last_has_guard(long* value) {
  const rank_t last = rank_count() - 1;
  told = 0;
  const auto its_process = broadcast(static_cast<std::int64_t>(getpid()), last);
  if (rank_me() == last) {
    guard.lock();
    *value = 5;
    guard.unlock();
  }
  sojourn::barrier();
  return static_cast<pid_t>(its_process);
}

/// Answers to calls of the last rank, short and long, have come there before the questions do.
void a_rank_answers_past_what_it_has_not_read() {
  constexpr int calls = 30;
  static int served = 0;
  const rank_t last = rank_count() - 1;
  long* value = alloc_on(last, 1);
  served = 0;
  const pid_t computing = last_has_guard(value);
  if (rank_me() == last) {
    std::vector<future<std::vector<int>>> answers;
    for (int i = 0; i < calls; ++i)
      answers.push_back(rpc(
          0,
          [](int n) {
            ++served;
            return std::vector<int>(n % 10 == 0 ? 50'000 : 3, n);
          },
          i));
    int wrong = 0;
    for (int i = 0; told == 0; i = (i + 1) % 1000) wrong += arithmetic(i);
    CHECK(wrong == 0);
    for (int i = 0; i < calls; ++i) {
      const std::vector<int> answer = answers[static_cast<std::size_t>(i)].get();
      CHECK_EQUAL(answer.size(), i % 10 == 0 ? 50'000u : 3u);
      CHECK_EQUAL(answer.back(), i);
    }
  } else if (rank_me() == 0) {
    while (served < calls) yield();
    guard.lock();
    CHECK_EQUAL((*value)++, 5);
    guard.unlock();
    kill(computing, SIGUSR2);
  }
  shared::barrier();
  CHECK_EQUAL(*value, 6);
  shared::barrier();
}

/// The same where what computes is the handler of a call, while its rank waits for the answer.
void a_handler_answers_past_what_its_rank_waits_for() {
  static bool computes = false;
  static bool has_answered = false;
  const rank_t last = rank_count() - 1;
  computes = has_answered = false;
  const pid_t computing = last_has_guard(alloc_on(last, 1));
  if (rank_me() == last) {
    const int answer = rpc(0, [] {
                         while (!computes) yield();
                         has_answered = true;
                         return 8;
                       }).get();
    CHECK_EQUAL(answer, 8);
    CHECK_EQUAL(rpc(0, [] { return 9; }).get(), 9);
  } else if (rank_me() == 0) {
    future<int> wrong = rpc(last, [] {
      rpc_ff(0, [] { computes = true; });
      int found = 0;
      for (int i = 0; told == 0; i = (i + 1) % 1000) found += arithmetic(i);
      return found;
    });
    while (!has_answered) yield();
    for (int i = 0; i < 3; ++i) yield();
    guard.lock();
    guard.unlock();
    kill(computing, SIGUSR2);
    CHECK_EQUAL(wrong.get(), 0);
  }
  shared::barrier();
}

/// Computes until rank 0 has got the mutex; returns how many results were wrong.
int compute_until_told() {
  int wrong = 0;
  for (int i = 0; told == 0; i = (i + 1) % 1000) wrong += arithmetic(i);
  return wrong;
}
bool has_begun = false;
int computed_wrong = -1;
void compute_and_report() {
  rpc_ff(0, [] { has_begun = true; });
  const int wrong = compute_until_told();
  rpc_ff(0, [](int n) { computed_wrong = n; }, wrong);
}

/// Wherever the runtime calls the program, the frames of the runtime there let a rank answer.
void a_rank_answers_wherever_it_calls_the_program() {
  struct place {
    const char* name;  // seen in a debugger where the claim hangs
    void (*compute)(rank_t last);
  };
  constexpr place places[] = {
      {"a call", [](rank_t last) { rpc_ff(last, compute_and_report); }},
      {"a bundled call",
       [](rank_t last) {
         const aggregated bundles;
         rpc_ff(last, compute_and_report);
       }},
      {"a bundled call behind one that has waited",
       [](rank_t last) {
         const aggregated bundles;
         rpc_ff(last, [] { yield(); });
         rpc_ff(last, compute_and_report);
       }},
      {"a thread", [](rank_t last) { spawn_on(last, compute_and_report).detach(); }},
      {"a continuation", [](rank_t last) {
         rpc_ff(last, [] {
           static future<void> done;
           done = rpc(0, [] { return 0; }).then([](int) { compute_and_report(); });
         });
       }}};
  for (const place& each : places) {
    long* value = alloc_on(rank_count() - 1, 1);
    const pid_t computing = last_has_guard(value);
    if (rank_me() == 0) {
      has_begun = false;
      computed_wrong = -1;
      each.compute(rank_count() - 1);
      while (!has_begun) yield();
      guard.lock();
      CHECK_EQUAL((*value)++, 5);
      guard.unlock();
      kill(computing, SIGUSR2);
      while (computed_wrong == -1) yield();
      CHECK_EQUAL(computed_wrong, 0);
    }
    shared::barrier();
  }
}

/// One fiber waits for a page, the other stores to it while calls that it has bundled wait: it lets
/// no other fiber run, also not the one for which the page has come in between.
void a_page_that_has_come_for_another_fiber_is_given_up() {
  for (const shared::protocol each : {shared::protocol::seq, shared::protocol::lsw}) {
    std::uintptr_t at = 0;
    if (rank_me() == 0)
      at = reinterpret_cast<std::uintptr_t>(shared::alloc<long>(page_longs, each));
    auto* value = reinterpret_cast<volatile long*>(broadcast(at, 0));
    for (long round = 1; round <= 30; ++round) {
      if (rank_me() == 0) *value = round;
      shared::barrier();
      shared::run_threads(2, [=](int number) {
        if (rank_me() != rank_count() - 1) return;
        if (number % 2 == 0) {
          const long seen = *value;
          CHECK(seen == round || seen == -round);
        } else {
          const aggregated bundles;
          rpc_ff(0, [] {});
          *value = -round;
        }
      });
      CHECK_EQUAL(static_cast<long>(*value), -round);
      shared::barrier();
    }
  }
}

/// Every rank computes in one thread and asks in another; with SOJOURN_SHARED_BELL_US=1 each is
/// interrupted again and again.
void all_ranks_compute_and_ask() {
  constexpr int rounds = 150;
  long* values = alloc_on(0, 4 * page_longs);
  shared::run_threads(2, [=](int number) {
    int wrong = 0;
    for (int i = 0; i < rounds; ++i) {
      if (number % 2 == 0) {
        for (const work& l : loads)
          if (l.run != long_messages) wrong += l.run(i);
        values[2 * page_longs + static_cast<std::size_t>(number)] = i;
        yield();
      } else {
        sums_guard.lock();
        ++values[0];
        values[page_longs + static_cast<std::size_t>(i)] += values[0] - values[0] + 1;
        sums_guard.unlock();
        wrong += arithmetic(i);
      }
    }
    CHECK(wrong == 0);
  });
  CHECK(values[0] == rounds * rank_count());
  for (std::size_t i = 0; i < rounds; ++i) CHECK(values[page_longs + i] == rank_count());
  for (std::size_t r = 0; r < static_cast<std::size_t>(rank_count()); ++r)
    CHECK(values[2 * page_longs + 2 * r] == rounds - 1);
  shared::barrier();
}

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action{};
  action.sa_handler = [](int) { told = 1; };
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(SIGUSR2, &action, nullptr);
  return sojourn::run(argc, argv, [] {
    for (const work& l : loads)
      check::claim(("a rank answers in " + std::string(l.name)).c_str(),
                   [&] { a_rank_answers_in(l); });
    check::claim("a rank answers one that bundles", a_rank_answers_one_that_bundles);
    check::claim("a rank answers past what it has not read",
                 a_rank_answers_past_what_it_has_not_read);
    check::claim("a handler answers past what its rank waits for",
                 a_handler_answers_past_what_its_rank_waits_for);
    check::claim("a rank answers wherever it calls the program",
                 a_rank_answers_wherever_it_calls_the_program);
    check::claim("a page that has come for another fiber is given up",
                 a_page_that_has_come_for_another_fiber_is_given_up);
    check::claim("all ranks compute and ask", all_ranks_compute_and_ask);
    return check::verdict();
  });
}
