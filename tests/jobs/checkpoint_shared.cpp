// SPDX-License-Identifier: Apache-2.0
// A job whose threads store to shared memory, of every protocol and on every rank, and whose answer
// does not depend on when it was ended and restored. checkpoint_shared PATH [dies]: after a few
// checkpoints, the last rank does.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string_view>

#include "sojourn/sojourn.hpp"

namespace {

using namespace sojourn;

constexpr std::size_t words = 3 * 4096 / sizeof(long);
constexpr std::size_t ranks_max = 8;
constexpr std::array kinds = {shared::protocol::lmw, shared::protocol::lsw, shared::protocol::seq};

/// Addresses of what each rank has allocated: no pointers, which roots may not have.
struct root {
  std::array<std::array<std::uintptr_t, ranks_max>, kinds.size()> blocks;
  std::array<std::uintptr_t, kinds.size()> kept;  ///< Of this rank: touched at the beginning only.
  std::uintptr_t unused;                          ///< A block that nobody touches before the end.
  thread mine;
};

shared::mutex of_count;
shared::atomic<long> rounds_of_all;
shared::atomic<std::uint8_t> never_changed;
shared::flag has_begun;
shared::flag never_set;
long* block(const root& r, std::size_t kind, rank_t owner) {
  return reinterpret_cast<long*>(r.blocks[kind][static_cast<std::size_t>(owner)]);
}

/// Adds to its own words of all blocks. Pages are stored to by all ranks at the same time.
void stores(root r, long rounds) {
  const auto ranks = static_cast<std::size_t>(rank_count());
  for (long round = 1; round <= rounds; ++round) {
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      long* all = block(r, kind, static_cast<rank_t>(round) % rank_count());
      for (std::size_t i = static_cast<std::size_t>(rank_me()); i < words; i += 97 * ranks)
        all[i] += round;
      if (kind == 1 && round % 3 == 0) sleep_for(std::chrono::microseconds(300));
    }
    // Perhaps it waits for the answer when the rank is to stand still.
    rounds_of_all.fetch_add(round);
    has_begun.wait();
  }
}

/// What it must be: see stores().
long answer(long rounds) {
  long sum = 0;
  for (rank_t rank = 0; rank < rank_count(); ++rank)
    for (auto i = static_cast<std::size_t>(rank); i < words;
         i += 97 * static_cast<std::size_t>(rank_count()))
      sum += rounds * (rounds + 1) / 2;
  return sum * static_cast<long>(kinds.size());
}

root begin(long rounds) {
  root r{};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    for (rank_t owner = 0; owner < rank_count(); ++owner) {
      std::uintptr_t at = 0;
      if (rank_me() == owner)
        at = reinterpret_cast<std::uintptr_t>(shared::alloc<long>(words, kinds[kind]));
      r.blocks[kind][static_cast<std::size_t>(owner)] = broadcast(at, owner);
    }
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    long* kept = shared::alloc<long>(words, kinds[kind]);
    kept[words - 1] = rank_me() + 41;
    r.kept[kind] = reinterpret_cast<std::uintptr_t>(kept);
  }
  // A hole, and a block that shares its page with nobody who has touched it.
  void* hole = shared::alloc<long>(5);
  r.unused = reinterpret_cast<std::uintptr_t>(shared::alloc<long>(5));
  shared::free(hole);
  if (rank_me() == 0) never_changed.store(200);
  if (rank_me() == rank_count() - 1) has_begun.set();
  root for_thread = r;
  r.mine = spawn(thread_options{.pinned = true}, stores, for_thread, rounds);
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "state";
  const bool dies = argc > 2 && std::string_view(argv[2]) == "dies";
  return run(argc, argv, [=] {
    constexpr long rounds = 400;
    root r = restored() ? restored_root<root>() : begin(rounds);
    barrier();
    int checkpoints = 0;
    int refused = 0;
    while (reduce(r.mine.finished() ? 0 : 1, std::plus<>()) > 0) {
      sleep_for(std::chrono::milliseconds(2));
      try {
        checkpoint(path, r);
        ++checkpoints;
      } catch (const checkpoint_error& e) {
        if (rank_me() == 0) std::printf("%s\n", e.what());
        ++refused;
      }
      if (dies && checkpoints == 5 && rank_me() == rank_count() - 1) std::raise(SIGKILL);
    }
    r.mine.join();
    // Mutexes, barriers and allocations go on as well.
    of_count.lock();
    *reinterpret_cast<long*>(r.unused) += 1;
    of_count.unlock();
    shared::free(reinterpret_cast<void*>(r.unused));
    for (const std::uintptr_t at : r.kept) {
      const long* kept = reinterpret_cast<const long*>(at);
      if (kept[words - 1] != rank_me() + 41 || kept[0] != 0) std::printf("what was kept is gone\n");
    }
    shared::barrier();
    if (rounds_of_all.load() != rank_count() * rounds * (rounds + 1) / 2)
      std::printf("rank %d: %ld rounds\n", rank_me(), rounds_of_all.load());
    if (never_changed.load() != 200 || !has_begun.is_set() || never_set.is_set())
      std::printf("atomics or flags that were kept are gone\n");
    // A wait for a flag is not saved.
    thread waits = spawn(thread_options{.pinned = true}, [] { never_set.wait(); });
    shared::local_barrier();
    for (int i = 0; i < 3; ++i) yield();
    try {
      checkpoint(path, r);
      std::printf("a fiber that waits for a flag was saved\n");
    } catch (const checkpoint_error& e) {
      if (e.why() != checkpoint_refusal::shared_memory) std::printf("%s\n", e.what());
    }
    if (rank_me() == 0) never_set.set();
    waits.join();
    shared::barrier();
    long sum = 0;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind)
      for (rank_t owner = 0; owner < rank_count(); ++owner)
        for (std::size_t i = 0; i < words; ++i) sum += block(r, kind, owner)[i];
    if (sum != answer(rounds))
      std::printf("rank %d: %ld, not %ld\n", rank_me(), sum, answer(rounds));
    shared::barrier();
    if (rank_me() == 0) std::printf("%d refused\nanswer %ld\n", refused, sum);
    return 0;
  });
}
