// SPDX-License-Identifier: Apache-2.0
// Memory stays flat while threads start, move and end. SOJOURN_SOAK_MOVES says how often they move
// in all; scripts/soak.sh asks for a million.
#include <algorithm>
#include <cinttypes>
#include <functional>
#include <map>
#include <memory_resource>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "memory/arena_extents.hpp"
#include "memory/global_heap.hpp"

using namespace sojourn;

namespace {

constexpr int threads_a_rank = 8;
constexpr int moves_a_thread = 50;
// Which thread comes to which stack is chance, so that the last of them is touched late: all that
// can be at once, and a MiB for tables. A few bytes lost in each of a million moves are more.
std::int64_t slack_bytes() {
  constexpr std::int64_t stack_touched = 48 << 10;
  return (std::int64_t{1} << 20) + rank_count() * threads_a_rank * stack_touched;
}

/// What this rank holds.
struct holdings {
  std::int64_t resident;  ///< As the system sees it, …
  std::int64_t mapped;
  std::int64_t objects;  ///< … and of the runtime: in the global heap,
  std::int64_t heaps;    ///< and in heaps of threads: no thread lives when this is looked at.
};

std::int64_t status_bytes(const char* key) {
  std::int64_t kib = -1;
  if (std::FILE* file = std::fopen("/proc/self/status", "re")) {
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      if (std::strncmp(line, key, std::strlen(key)) == 0) {
        kib = std::strtoll(line + std::strlen(key), nullptr, 10);
      }
    }
    std::fclose(file);
  }
  return kib * 1024;
}

holdings held_now() {
  return {status_bytes("VmRSS:"), status_bytes("VmSize:"),
          static_cast<std::int64_t>(detail::heap_bytes_in_use()),
          static_cast<std::int64_t>(detail::extents.bytes_taken())};
}

/// Every time to another rank, so that each is a migration.
void hop(std::minstd_rand& random) {
  auto others = static_cast<unsigned>(rank_count() - 1);
  migrate(self(), (rank_me() + 1 + static_cast<rank_t>(random() % others)) % rank_count());
}

long travels_alone(unsigned seed) {
  std::minstd_rand random(seed);
  for (int i = 0; i < moves_a_thread; ++i) hop(random);
  return 0;
}

/// Its heap grows past its first extent, and shrinks again.
long travels_with_a_heap(unsigned seed) {
  std::minstd_rand random(seed);
  std::pmr::vector<std::pmr::vector<char>> blocks(thread_heap());
  std::pmr::map<int, std::pmr::string> names(thread_heap());
  long wrong = 0;
  for (int i = 0; i < moves_a_thread; ++i) {
    names[i % 20].assign("a text too long for its node: ").append(std::to_string(i));
    if (i % 3 == 0) names.erase(i % 7);
    blocks.emplace_back(4096 + random() % 16384, static_cast<char>(i));
    if (blocks.size() > 8) blocks.clear();
    hop(random);
    wrong += !blocks.empty() && blocks.back().back() != static_cast<char>(i);
  }
  return wrong;
}

long travels_with_a_long_stack(unsigned seed) {
  std::minstd_rand random(seed);
  volatile char frame[40 << 10];
  asm volatile("" : : "r"(frame) : "memory");  // all of it, though two bytes a turn are used
  long wrong = 0;
  for (int i = 0; i < moves_a_thread; ++i) {
    frame[0] = static_cast<char>(i);
    frame[sizeof frame - 1] = static_cast<char>(i);
    hop(random);
    wrong += frame[0] != static_cast<char>(i) || frame[sizeof frame - 1] != static_cast<char>(i);
  }
  return wrong;
}

/// Asked of the home of what it counts.
long wrong_in_all;

void traveller(unsigned seed, rank_t home) {
  auto travels = seed % 4 == 0   ? travels_with_a_heap
                 : seed % 4 == 1 ? travels_with_a_long_stack
                                 : travels_alone;
  long wrong = travels(seed);
  rpc(home, [](long n) { wrong_in_all += n; }, wrong).get();
}

/// Every rank starts its threads, and sees them end.
void round_of_threads(int round) {
  std::vector<thread> all;
  for (int i = 0; i < threads_a_rank; ++i) {
    auto seed = static_cast<unsigned>((round * rank_count() + rank_me()) * threads_a_rank + i + 1);
    all.push_back(spawn(traveller, seed, rank_me()));
  }
  for (thread t : all) t.join();
  barrier();
}

int moves_wanted() {
  const char* asked = std::getenv("SOJOURN_SOAK_MOVES");
  return asked != nullptr ? std::atoi(asked) : sanitized ? 5'000 : 20'000;
}

void memory_stays_flat() {
  const int moves_a_round = rank_count() * threads_a_rank * moves_a_thread;
  const int rounds = (moves_wanted() + moves_a_round - 1) / moves_a_round;
  // Stacks and heaps have been on every rank by then, and as many at once as there will be.
  const int warm_up = std::max(10'000 / moves_a_round + 1, rounds / 5);
  const counters begin = counters_now();
  barrier();  // no rank's thread moves on from a rank that has not counted yet
  for (int i = 0; i < warm_up; ++i) round_of_threads(i);
  const holdings before = held_now();
  for (int i = warm_up; i < warm_up + rounds; ++i) {
    alarm(check::patience_seconds);
    round_of_threads(i);
  }
  // A heap that ended elsewhere gives back what is of this rank by a message.
  for (int i = 0; i < 100'000 && detail::extents.bytes_taken() != 0; ++i) yield();
  const holdings after = held_now();
  CHECK_EQUAL(
      reduce(counters_now() - begin, std::plus<>{}).migrations,
      static_cast<std::uint64_t>(warm_up + rounds) * static_cast<std::uint64_t>(moves_a_round));
  CHECK_EQUAL(wrong_in_all, 0);
  CHECK_EQUAL(after.objects, before.objects);
  CHECK_EQUAL(after.heaps, 0);
  CHECK(before.resident > 0 && before.mapped > 0);
  std::printf("rank %d: %d moves of all ranks after %d: resident %" PRId64 " KiB %+" PRId64
              ", mapped %" PRId64 " KiB %+" PRId64 "\n",
              rank_me(), rounds * moves_a_round, warm_up * moves_a_round, before.resident / 1024,
              (after.resident - before.resident) / 1024, before.mapped / 1024,
              (after.mapped - before.mapped) / 1024);
  // A sanitizer keeps what is freed, and an emulator, which copies nothing for us, translated code.
  if (sanitized || !check::system_copies()) return;
  CHECK(after.resident - before.resident <= slack_bytes());
  CHECK(after.mapped - before.mapped <= slack_bytes());
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("memory stays flat while threads move", memory_stays_flat);
    return check::verdict();
  });
}
