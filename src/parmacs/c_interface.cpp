// SPDX-License-Identifier: Apache-2.0
// sojourn_shared.h over the C++ interface.
#include <sys/time.h>

#include <cstdint>
#include <cstdio>

#include <sojourn_shared.h>
#include "base/check.hpp"
#include "memory/address_map.hpp"
#include "parmacs/meetings.hpp"
#include "parmacs/processes.hpp"
#include "sojourn/detail/shared_members.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/shared.hpp"

using namespace sojourn;

namespace {

/// An object of shared memory is what lies at its address, and holds nothing.
template <class Object, class Place>
Object& at(Place* place) {
  static_assert(sizeof(Object) <= sizeof(Place));
  return *reinterpret_cast<Object*>(place);
}
shared::mutex& mutex_of(sojourn_lock_t* lock) { return at<shared::mutex>(lock); }
shared::flag& flag_of(sojourn_flag_t* flag) { return at<shared::flag>(flag); }
shared::condition_variable& condition_of(sojourn_condition_t* condition) {
  return at<shared::condition_variable>(condition);
}
shared::atomic<long>& atomic_of(sojourn_counter_t* counter) {
  return at<shared::atomic<long>>(counter);
}

/// A number of processes that a program has given. Errors: sojourn::error.
std::uint32_t processes_of(long count, const char* remedy) {
  if (count <= 0 || count > 1 << 20)
    throw error(detail::format("%ld processes are to meet: %s", count, remedy));
  return static_cast<std::uint32_t>(count);
}

}  // namespace

int sojourn_rank(void) { return rank_me(); }
int sojourn_ranks(void) { return rank_count(); }

void sojourn_create(void (*function)(void*), void* argument) {
  detail::create_process(function, argument);
}
void sojourn_create_team(void (*function)(void*), long processes) {
  for (long k = 1; k < processes; ++k) detail::create_process(function, nullptr);
  detail::call_process(function, nullptr);
}
void sojourn_wait_for_end(long count) { detail::wait_for_processes(count); }
int sojourn_process(void) { return detail::process_number(); }
void sojourn_exit(int status) { detail::end_process(status); }
void sojourn_yield(void) { yield(); }

void* sojourn_shared_alloc(size_t bytes) {
  try {
    return shared::allocate(bytes);
  } catch (const shared::exhausted& e) {
    std::fprintf(stderr, "sojourn: %s\n", e.what());
    return nullptr;
  }
}
void sojourn_shared_free(void* memory) { shared::free(memory); }
int sojourn_is_shared(const void* address) {
  return detail::addresses.unit != 0 &&
                 detail::addresses.in_shared(reinterpret_cast<std::uint64_t>(address))
             ? 1
             : 0;
}
void sojourn_shared_name(const void* memory, const char* name) { shared::name(memory, name); }

void sojourn_lock_init(sojourn_lock_t*) {}
void sojourn_lock(sojourn_lock_t* lock) { mutex_of(lock).lock(); }
int sojourn_try_lock(sojourn_lock_t* lock) { return mutex_of(lock).try_lock() ? 1 : 0; }
void sojourn_unlock(sojourn_lock_t* lock) { mutex_of(lock).unlock(); }

void sojourn_barrier_init(sojourn_barrier_t* barrier, long count) { barrier->count = count; }
void sojourn_barrier_wait(sojourn_barrier_t* barrier, long count) {
  const long all = count != 0 ? count : barrier->count;
  detail::meet(&barrier->place,
               processes_of(all, "say how many, in BARINIT(b, n) or in BARRIER(b, n)"),
               detail::are_all_processes);
}
void sojourn_barrier_all(void) {
  // When a process is created meanwhile, those who have met go on before all have.
  while (!shared::detail::barrier_of_members());
}

void sojourn_flag_init(sojourn_flag_t* flag) { flag_of(flag).clear(); }
void sojourn_flag_set(sojourn_flag_t* flag) { flag_of(flag).set(); }
void sojourn_flag_clear(sojourn_flag_t* flag) { flag_of(flag).clear(); }
void sojourn_flag_wait(sojourn_flag_t* flag) { flag_of(flag).wait(); }

void sojourn_condition_init(sojourn_condition_t*) {}
void sojourn_condition_wait(sojourn_condition_t* condition, sojourn_lock_t* lock) {
  condition_of(condition).wait(mutex_of(lock));
}
void sojourn_condition_signal(sojourn_condition_t* condition) {
  condition_of(condition).notify_one();
}
void sojourn_condition_broadcast(sojourn_condition_t* condition) {
  condition_of(condition).notify_all();
}

void sojourn_semaphore_init(sojourn_semaphore_t* semaphore, long count) {
  detail::set_semaphore(semaphore, count);
}
void sojourn_semaphore_wait(sojourn_semaphore_t* semaphore) { detail::take_semaphore(semaphore); }
void sojourn_semaphore_post(sojourn_semaphore_t* semaphore) { detail::give_semaphore(semaphore); }

void sojourn_counter_set(sojourn_counter_t* counter, long value) {
  atomic_of(counter).store(value);
}
long sojourn_counter_get(sojourn_counter_t* counter) { return atomic_of(counter).load(); }
long sojourn_counter_add(sojourn_counter_t* counter, long value) {
  return atomic_of(counter).fetch_add(value);
}
long sojourn_counter_compare_exchange(sojourn_counter_t* counter, long expected, long desired) {
  atomic_of(counter).compare_exchange(expected, desired);
  return expected;
}
long sojourn_subscript(sojourn_counter_t* counter, long last, long processes) {
  return detail::next_subscript(
      counter, last, processes == 0 ? 0 : processes_of(processes, "in GETSUB(g, i, last, n)"));
}

unsigned long sojourn_clock_us(void) {
  timeval now{};
  gettimeofday(&now, nullptr);
  return static_cast<unsigned long>(now.tv_sec) * 1000000u +
         static_cast<unsigned long>(now.tv_usec);
}
