// SPDX-License-Identifier: Apache-2.0
// The calls by which the language locks (language_locks.hpp): the linker's --wrap brings the
// compiler's calls here, and our pthread_once takes the place of the C library's.

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <mutex>

#include "base/check.hpp"
#include "fiber/block.hpp"
#include "fiber/language_locks.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/waiters.hpp"
#include "memory/address_map.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

namespace {

std::uint64_t address_of_frame() {
  return reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
}

/// False in other threads of the program, which know nothing of fibers.
bool on_worker() {
  return addresses.in_stacks(address_of_frame()) ||
         address_of_frame() - addresses.worker_stack() < address_map::worker_stack_bytes;
}
/// False in handlers that never wait, too.
bool in_fiber() { return running_piece() != nullptr && addresses.in_stacks(address_of_frame()); }

const char* text_of(const language_lock& lock) {
  return lock.kind == waits_at::once ? "a function of std::call_once"
                                     : "the initialisation of a static variable";
}

/// Whether the running fiber would wait for itself. It would not if frames older than its youngest
/// fork have begun the initialisation: these go on when it waits, and may finish.
bool is_begun_by_same(const language_lock& lock) {
  if (lock.owner != running_piece()) return false;
  const boundary fork = youngest_open_fork();
  return !fork || lock.frame < fork.at;
}

/// Suspends until no fiber of this rank is initialising the object, or running the function of the
/// once_flag.
void wait_for(const void* object) {
  if (!on_worker()) return;
  while (language_lock* const lock = find_lock(object)) {
    if (!in_fiber()) {
      die("a function that never waits needs %s, which a fiber of this rank has begun and which "
          "waits: let the function wait, or call it when that is over",
          text_of(*lock));
    }
    if (is_begun_by_same(*lock)) {
      die("%s needs its own result (0x%llx): it would wait for itself", text_of(*lock),
          static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(object)));
    }
    (void)wait_in(*lock);
  }
}

void begin(waits_at kind, const void* object) {
  if (!on_worker()) return;
  ++running.static_inits;
  if (!in_fiber()) return;
  if (language_lock* const lock = find_lock(nullptr); lock != nullptr) {
    lock->kind = kind;
    lock->object = object;
    lock->owner = running_piece();
    lock->frame = address_of_frame();
  }
}

void end(const void* object) {
  if (!on_worker()) return;
  --running.static_inits;
  language_lock* const lock = find_lock(object);
  if (lock == nullptr) return;
  lock->object = nullptr;
  while (!lock->empty()) make_ready(take_waiter(*lock), resumed::here);
}

/// What std::call_once leaves in variables of the thread for the function that it has called.
struct once_arguments {
  void* callable = std::__once_callable;
  void (*call)() = std::__once_call;
  void put_back() const {
    std::__once_callable = callable;
    std::__once_call = call;
  }
};

// Stands in the word of a pthread_once_t while its function runs, and says in which process: the
// number of forks behind that process. In a child of fork() the thread that ran the function does
// not exist, so the child runs the function anew.
unsigned generation = 0;

void begin_generation() {
  ++generation;
  for (language_lock& each : language_locks) each.object = nullptr;
}

const int forks_are_told [[maybe_unused]] = pthread_atfork(nullptr, nullptr, begin_generation);

}  // namespace

}  // namespace sojourn::detail

using namespace sojourn::detail;

extern "C" {
int __real___cxa_guard_acquire(long long* guard);
void __real___cxa_guard_release(long long* guard);
void __real___cxa_guard_abort(long long* guard);

int __wrap___cxa_guard_acquire(long long* guard) {
  wait_for(guard);
  const int initialise = __real___cxa_guard_acquire(guard);
  if (initialise != 0) begin(waits_at::static_variable, guard);
  return initialise;
}
void __wrap___cxa_guard_release(long long* guard) {
  __real___cxa_guard_release(guard);
  end(guard);
}
void __wrap___cxa_guard_abort(long long* guard) {
  __real___cxa_guard_abort(guard);
  end(guard);
}

// Takes the place of the C library's function, for the program and the libraries that it loads. (An
// exception cannot leave the C library's function in a program that has its own unwinder,
// -static-libgcc.)
int pthread_once(pthread_once_t* once, void (*function)()) {
  constexpr int done = 2;  // as in the C library
  const int under_way = static_cast<int>(generation << 2 | 1);
  const auto state = [once] { return __atomic_load_n(once, __ATOMIC_ACQUIRE); };
  const auto leave_as = [once](int result) {
    __atomic_store_n(once, result, __ATOMIC_RELEASE);
    syscall(SYS_futex, once, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  };
  if (state() == done) return 0;
  const once_arguments arguments;
  for (;;) {
    wait_for(once);
    int found = state();
    if (found == done) return 0;
    if (found != under_way && __atomic_compare_exchange_n(once, &found, under_way, false,
                                                          __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
      break;
    // A thread of the program that is no fiber runs the function.
    if (found == under_way)
      syscall(SYS_futex, once, FUTEX_WAIT_PRIVATE, under_way, nullptr, nullptr, 0);
  }
  arguments.put_back();
  begin(waits_at::once, once);
  try {
    function();
  } catch (...) {
    leave_as(0);
    end(once);
    throw;
  }
  leave_as(done);
  end(once);
  return 0;
}
}
