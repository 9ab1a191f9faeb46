// SPDX-License-Identifier: Apache-2.0
#include "nine/shared_machine.hpp"

#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace apps::nine {

shared_machine::shared_machine(int threads_of_rank)
    : threads_of_rank_(threads_of_rank), turns_(static_cast<std::size_t>(threads_of_rank)) {
  locks_ = static_cast<padded_lock*>(allocate(locks_max * sizeof(padded_lock), "locks"));
  for (double*& given : given_)
    given = array<double>(static_cast<std::size_t>(threads()), "reductions").data();
}

int shared_machine::threads() const { return threads_of_rank_ * sojourn::rank_count(); }

void* shared_machine::allocate(std::size_t bytes, const char*) {
  std::uintptr_t at = 0;
  if (sojourn::rank_me() == 0)
    at = reinterpret_cast<std::uintptr_t>(sojourn::shared::allocate(bytes, 4096));
  return reinterpret_cast<void*>(sojourn::broadcast(at));
}

void shared_machine::barrier(int) { sojourn::shared::barrier(); }
void shared_machine::lock(int, int number) { locks_[number].mutex.lock(); }
void shared_machine::unlock(int, int number) { locks_[number].mutex.unlock(); }

std::span<double> shared_machine::give(int thread, double mine) {
  std::size_t& turn = turns_[static_cast<std::size_t>(thread % threads_of_rank_)];
  double* given = given_[turn++ % 2];
  given[thread] = mine;
  sojourn::shared::barrier();
  return {given, static_cast<std::size_t>(threads())};
}

double shared_machine::sum(int thread, double mine) {
  const auto given = give(thread, mine);
  return std::accumulate(given.begin(), given.end(), 0.0);
}
double shared_machine::greatest(int thread, double mine) {
  return std::ranges::max(give(thread, mine));
}

void run_on_ranks(application& program, shared_machine& m, int threads_of_rank) {
  program.prepare(m);
  sojourn::shared::run_threads(threads_of_rank, [&](int thread) { program.run(m, thread); });
}

}  // namespace apps::nine
