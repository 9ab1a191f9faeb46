// SPDX-License-Identifier: Apache-2.0
#include "nine/kernel/threads_machine.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>

namespace apps::nine {

// Where each thread has a core, those who wait look for some tens of microseconds, as long as it
// takes to wake a thread that sleeps. Elsewhere they would only keep the others from arriving.
threads_machine::threads_machine(int threads)
    : threads_(threads),
      looks_(static_cast<unsigned>(threads) <= std::thread::hardware_concurrency() ? 100'000 : 0),
      contributions_(static_cast<std::size_t>(threads)) {}

threads_machine::~threads_machine() {
  for (const allocation& a : allocations_) munmap(a.bytes.data(), a.bytes.size());
}

void* threads_machine::allocate(std::size_t bytes, const char* name) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), name);
  allocations_.push_back({name, {static_cast<std::byte*>(memory), bytes}});
  return memory;
}

void threads_machine::barrier(int /*thread*/) {
  const int epoch = epoch_.load(std::memory_order_relaxed);  // stays until this thread has arrived
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    epoch_.store(epoch + 1, std::memory_order_release);
    epoch_.notify_all();
    return;
  }
  for (int look = 0; look < looks_; ++look) {
    if (epoch_.load(std::memory_order_acquire) != epoch) return;
  }
  epoch_.wait(epoch, std::memory_order_acquire);
}

void threads_machine::lock(int /*thread*/, int number) {
  locks_[static_cast<std::size_t>(number)].lock();
}

void threads_machine::unlock(int /*thread*/, int number) {
  locks_[static_cast<std::size_t>(number)].unlock();
}

std::size_t threads_machine::give(int thread, double mine) {
  contribution& own = contributions_[static_cast<std::size_t>(thread)];
  const std::size_t place = own.turn++ % 2;
  own.value[place] = mine;
  barrier(thread);
  return place;
}

double threads_machine::sum(int thread, double mine) {
  const std::size_t place = give(thread, mine);
  double all = 0;
  for (const contribution& c : contributions_) all += c.value[place];
  return all;
}

double threads_machine::greatest(int thread, double mine) {
  const std::size_t place = give(thread, mine);
  double most = mine;
  for (const contribution& c : contributions_) most = std::max(most, c.value[place]);
  return most;
}

void run_on_threads(application& program, threads_machine& m) {
  program.prepare(m);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < m.threads(); ++thread) {
    threads.emplace_back([&program, &m, thread] { program.run(m, thread); });
  }
}

}  // namespace apps::nine
