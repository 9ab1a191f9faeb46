// SPDX-License-Identifier: Apache-2.0
// Short reads of memory that is not shared: a message where the owner answers at once, the system's
// copy where it does not. Whichever it is, they are right and need nothing of the owner.
#include <sched.h>
#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

constexpr std::array<std::size_t, 9> sizes{1, 8, 63, 64, 65, 500, 2048, 2049, 5000};

unsigned char byte_of(rank_t owner, std::size_t at) {
  return static_cast<unsigned char>(static_cast<std::size_t>(owner) * 31 + at * 7 + at / 256);
}

global_ptr<unsigned char> make_bytes() {
  auto mine = make_array<unsigned char>(rank_me(), sizes.back());
  for (std::size_t i = 0; i < sizes.back(); ++i) mine.local()[i] = byte_of(rank_me(), i);
  return mine;
}

/// Of each size, of each rank.
void read_all(const std::vector<global_ptr<unsigned char>>& all) {
  std::vector<unsigned char> on_heap(sizes.back());
  std::array<unsigned char, sizes.back()> on_stack{};
  for (rank_t r = 0; r < rank_count(); ++r) {
    const auto from = all[static_cast<std::size_t>(r)];
    for (const std::size_t n : sizes) {
      get(from, std::span(&on_heap[0], n));
      get(from, std::span(&on_stack[0], n));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < n; ++i) {
        wrong += on_heap[i] != byte_of(r, i);
        wrong += on_stack[i] != byte_of(r, i);
      }
      CHECK_EQUAL(wrong, 0u);
    }
  }
}

void all_ranks_read_each_other_at_once() {
  const auto mine = make_bytes();
  const auto all = all_gather(mine);
  for (int round = 0; round < 100; ++round) read_all(all);
  barrier();
  destroy_array(mine, sizes.back());
}

const std::vector<global_ptr<unsigned char>>* whose;

void fibers_of_a_rank_read_side_by_side() {
  const auto mine = make_bytes();
  const auto all = all_gather(mine);
  whose = &all;
  std::vector<future<void>> readers;
  for (int i = 0; i < 10; ++i) {
    readers.push_back(rpc(rank_me(), [] {
      for (int round = 0; round < 10; ++round) {
        read_all(*whose);
        yield();
      }
    }));
  }
  for (auto& r : readers) r.get();
  barrier();
  destroy_array(mine, sizes.back());
}

/// It looks at no message until it has been read from often.
void an_owner_that_computes_is_read_all_the_same() {
  // Checked mode asks the owner first whether there is such an object.
  if (rank_count() == 1 || !check::system_copies() || sojourn::detail::checked()) return;
  auto words = rank_me() == 0 ? make_array<long>(0, 2) : global_ptr<long>();
  if (rank_me() == 0) words.local()[0] = words.local()[1] = 0;
  words = broadcast(words);
  if (rank_me() == 0) {
    words.local()[0] = 42;
    std::atomic_ref<long> told(words.local()[1]);
    while (told.load() == 0) {
    }
  } else if (rank_me() == rank_count() - 1) {
    while (load(words) != 42) {
    }
    for (int i = 0; i < 1000; ++i) CHECK_EQUAL(load(words), 42);
    store(words + 1, 1L);
  }
  barrier();
  if (rank_me() == 0) destroy_array(words, 2);
}

/// Where each rank has a core; at the latest once nobody else takes it away.
void an_owner_that_waits_answers() {
  const char* share = std::getenv("SOJOURN_SHARE");
  cpu_set_t cores;
  const bool knows = sched_getaffinity(0, sizeof cores, &cores) == 0;
  if (share == nullptr || std::strcmp(share, "off") != 0 || rank_count() == 1 || !knows ||
      CPU_COUNT(&cores) < rank_count()) {
    return;
  }
  const auto mine = make_bytes();
  const auto all = all_gather(mine);
  if (rank_me() == 0) {
    const std::uint64_t patience_ns = 20'000'000'000;
    const std::uint64_t start_ns = now_ns();
    bool answered = false;
    while (!answered && now_ns() - start_ns < patience_ns) {
      const counters before = counters_now();
      CHECK_EQUAL(load(all.back() + 99), byte_of(rank_count() - 1, 99));
      answered = (counters_now() - before).bulk_copies == 3;
    }
    CHECK(answered);
  }
  barrier();
  destroy_array(mine, sizes.back());
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("all ranks read each other at once", all_ranks_read_each_other_at_once);
    check::claim("fibers of a rank read side by side", fibers_of_a_rank_read_side_by_side);
    check::claim("an owner that computes is read all the same",
                 an_owner_that_computes_is_read_all_the_same);
    check::claim("an owner that waits answers", an_owner_that_waits_answers);
    return check::verdict();
  });
}
