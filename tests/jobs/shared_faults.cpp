// SPDX-License-Identifier: Apache-2.0
// Faults in every place of a program: each access here is to a page that another rank stored to
// last.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sojourn/sojourn.hpp>
#include <vector>

#include "check.hpp"

namespace {

using namespace sojourn;

constexpr std::size_t page = 4096;
constexpr std::size_t pages = 32;
constexpr std::size_t words_of_page = page / sizeof(long);
constexpr std::size_t words = pages * words_of_page;

template <class T>
T* alloc_on(rank_t rank, std::size_t count) {
  std::uintptr_t at = 0;
  if (rank_me() == rank) at = reinterpret_cast<std::uintptr_t>(shared::alloc<T>(count));
  return reinterpret_cast<T*>(broadcast(at, rank));
}

/// The words are their numbers; the pages were stored to by all ranks in turn.

long* scattered() {
  long* all = alloc_on<long>(0, words);
  for (std::size_t p = 0; p < pages; ++p) {
    if (static_cast<int>(p) % rank_count() != rank_me()) continue;
    for (std::size_t i = 0; i < words_of_page; ++i)
      all[p * words_of_page + i] = static_cast<long>(p * words_of_page + i);
  }
  shared::barrier();
  return all;
}

long sum(const long* from, std::size_t first, std::size_t count) {
  long s = 0;
  for (std::size_t i = first; i < first + count; ++i) s += from[i];
  return s;
}
constexpr long sum_of_numbers(std::size_t first, std::size_t count) {
  return static_cast<long>(count * first + count * (count - 1) / 2);
}

class cell {
 public:
  explicit cell(long value) : value_(value) {}
  long get() { return value_; }
  /// Faults while it runs.
  long weighted(shared::pointer<const long> weights, std::size_t of) {
    return value_ * weights[of * words_of_page];
  }

 private:
  long value_;
};

void in_a_method() {
  const long* all = scattered();
  auto mine = make<cell>((rank_me() + 1) % rank_count(), 3L);
  for (std::size_t p = 0; p < pages; ++p) {
    const auto how = p % 2 == 0 ? via::rpc : via::migrate;
    CHECK_EQUAL(mine.call<&cell::weighted>(how, shared::pointer<const long>(all), p),
                3 * static_cast<long>(p * words_of_page));
  }
  shared::barrier();
}

/// Loads before, between and after accesses by which it moves, with a frame of so many words.
template <std::size_t Words>
long walk(global_ptr<cell> first, global_ptr<cell> second, shared::pointer<const long> from) {
  std::array<long, Words> local;
  for (std::size_t i = 0; i < Words; ++i) local[i] = from[i % words];
  long result = first.call<&cell::get>(via::migrate);
  result += sum(from, 5 * words_of_page - 2, 4);  // on two pages
  result += second.call<&cell::get>(via::migrate);
  result += sum(from, 9 * words_of_page, words_of_page);
  result += first.call<&cell::get>(via::migrate);
  for (std::size_t i = 0; i < Words; ++i) result += local[i];
  return result;
}

template <std::size_t Words>
void in_a_frame_of() {
  const long* all = scattered();
  auto first = make<cell>((rank_me() + 1) % rank_count(), 100L);
  auto second = make<cell>((rank_me() + 2) % rank_count(), 1000L);
  long expected = 100 + 1000 + 100 + sum_of_numbers(5 * words_of_page - 2, 4) +
                  sum_of_numbers(9 * words_of_page, words_of_page);
  for (std::size_t i = 0; i < Words; ++i) expected += static_cast<long>(i % words);
  for (int round = 0; round < 3; ++round)
    CHECK_EQUAL(activate(walk<Words>, first, second, shared::pointer<const long>(all)), expected);
  shared::barrier();
}

void in_frames_that_migrate() {
  in_a_frame_of<1>();
  in_a_frame_of<100>();
  in_a_frame_of<1500>();
  in_a_frame_of<4000>();
}

/// A fiber that waits for a page cannot leave its rank in the middle of an instruction; it goes on
/// here, and leaves later.
long work(shared::pointer<const long> from, std::size_t p) {
  long s = 0;
  for (int round = 0; round < 3; ++round) {
    s = sum(from, p * words_of_page, words_of_page);
    yield();
  }
  return s;
}

void while_others_would_steal_the_fiber() {
  const long* all = scattered();
  shared::pointer<const long> from(all);
  long* sums = alloc_on<long>(0, pages);
  if (rank_me() == 0) {
    std::vector<thread> all_threads;
    for (std::size_t p = 0; p < pages; ++p)
      all_threads.push_back(spawn([](shared::pointer<const long> values, shared::pointer<long> to,
                                     std::size_t which) { to[which] = work(values, which); },
                                  from, shared::pointer<long>(sums), p));
    for (thread t : all_threads) t.join();
    for (std::size_t p = 0; p < pages; ++p)
      CHECK_EQUAL(sums[p], sum_of_numbers(p * words_of_page, words_of_page));
  }
  barrier();
}

[[gnu::noinline]] long descend(const long* from, int depth) {
  volatile long local = depth;
  if (depth == 0) return sum(from, 0, words);
  const long below = descend(from, depth - 1);
  return below + local - local;
}

void deep_on_a_stack() {
  const long* all = scattered();
  CHECK_EQUAL(descend(all, 300), sum_of_numbers(0, words));
  shared::barrier();
}

void under_locks() {
  long* all = scattered();
  auto* lock = alloc_on<shared::mutex>(0, 1);
  mutex of_rank;
  shared::run_threads(3, [&](int) {
    for (std::size_t p = 0; p < pages; ++p) {
      const std::lock_guard here(of_rank);  // of Sojourn: fibers of the rank wait for it
      lock->lock();
      all[p * words_of_page + 1] += 1;
      lock->unlock();
    }
  });
  for (std::size_t p = 0; p < pages; ++p)
    CHECK_EQUAL(all[p * words_of_page + 1],
                static_cast<long>(p * words_of_page) + 1 + 3L * rank_count());
  shared::barrier();
}

void in_memory_functions_and_at_ends_of_pages() {
  long* all = scattered();
  std::vector<long> own(words);
  std::memcpy(own.data(), all, words * sizeof(long));
  for (std::size_t i = 0; i < words; ++i) CHECK_EQUAL(own[i], static_cast<long>(i));
  shared::barrier();
  struct [[gnu::packed, gnu::may_alias]] unaligned {
    using vector [[gnu::vector_size(32)]] = unsigned char;
    vector value;
  };
  auto* bytes = reinterpret_cast<unsigned char*>(all);
  // A vector on two pages, by one rank after the other.
  for (rank_t r = 0; r < rank_count(); ++r) {
    if (r == rank_me()) {
      for (std::size_t p = 1; p < pages; ++p) {
        auto* two = reinterpret_cast<unaligned*>(bytes + p * page - 16);
        two->value = two->value ^ static_cast<unsigned char>(1 + r);
      }
    }
    shared::barrier();
  }
  unsigned char mask = 0;
  for (rank_t r = 0; r < rank_count(); ++r) mask = static_cast<unsigned char>(mask ^ (1 + r));
  const auto* before = reinterpret_cast<const unsigned char*>(own.data());
  for (std::size_t p = 1; p < pages; ++p)
    for (std::size_t k = 0; k < 32; ++k)
      CHECK_EQUAL(static_cast<int>(bytes[p * page - 16 + k]),
                  static_cast<int>(before[p * page - 16 + k]) ^ mask);
  shared::barrier();
#if defined(__x86_64__)
  std::vector<unsigned char> copy(pages * page);
  const void* from = bytes;
  void* to = copy.data();
  std::size_t count = copy.size();
  asm volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
  CHECK_EQUAL(std::memcmp(copy.data(), bytes, copy.size()), 0);
  shared::barrier();
#endif
}

void a_thousand_locks_each_guard_a_counter() {
  constexpr std::size_t locks = 1000;
  auto* mutexes =
      alloc_on<unsigned char>(rank_count() - 1, locks);  // its address is a mutex's name
  long* counters = alloc_on<long>(0, locks);
  constexpr int rounds = 300;
  shared::run_threads(2, [&](int number) {
    for (int k = 0; k < rounds; ++k) {
      const auto l =
          static_cast<std::size_t>(number * 7919 + k * (number % 2 == 0 ? 1 : 31)) % locks;
      auto& lock = *reinterpret_cast<shared::mutex*>(mutexes + l);
      lock.lock();
      ++counters[l];
      lock.unlock();
    }
  });
  long all = 0;
  for (std::size_t l = 0; l < locks; ++l) all += counters[l];
  CHECK_EQUAL(all, 2L * rank_count() * rounds);
  shared::barrier();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("in a method", in_a_method);
    check::claim("in frames that migrate", in_frames_that_migrate);
    check::claim("while others would steal the fiber", while_others_would_steal_the_fiber);
    check::claim("deep on a stack", deep_on_a_stack);
    check::claim("under locks", under_locks);
    check::claim("in memory functions and at ends of pages",
                 in_memory_functions_and_at_ends_of_pages);
    check::claim("a thousand locks each guard a counter", a_thousand_locks_each_guard_a_counter);
    return check::verdict();
  });
}
