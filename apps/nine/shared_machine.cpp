// SPDX-License-Identifier: Apache-2.0
#include "nine/shared_machine.hpp"

#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>

namespace apps::nine {

shared_machine::shared_machine(int threads_of_rank) : threads_of_rank_(threads_of_rank) {
  locks_ = static_cast<padded_lock*>(allocate(locks_max * sizeof(padded_lock), "locks"));
}

int shared_machine::threads() const { return threads_of_rank_ * sojourn::rank_count(); }

void* shared_machine::allocate(std::size_t bytes, const char* name) {
  std::uintptr_t at = 0;
  if (sojourn::rank_me() == 0) {
    void* const block = sojourn::shared::allocate(bytes, 4096);
    sojourn::shared::name(block, name);
    at = reinterpret_cast<std::uintptr_t>(block);
  }
  return reinterpret_cast<void*>(sojourn::broadcast(at));
}

void shared_machine::barrier(int) { sojourn::shared::barrier(); }
void shared_machine::lock(int, int number) { locks_[number].mutex.lock(); }
void shared_machine::unlock(int, int number) { locks_[number].mutex.unlock(); }

double shared_machine::sum(int, double mine) {
  return sojourn::shared::reduce_all(mine, std::plus<>{});
}
double shared_machine::greatest(int, double mine) {
  return sojourn::shared::reduce_all(mine, [](double a, double b) { return std::max(a, b); });
}

void run_on_ranks(application& program, shared_machine& m, int threads_of_rank) {
  program.prepare(m);
  sojourn::shared::run_threads(threads_of_rank, [&](int thread) { program.run(m, thread); });
}

}  // namespace apps::nine
