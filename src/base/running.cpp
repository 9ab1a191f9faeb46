// SPDX-License-Identifier: Apache-2.0
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

namespace {
exception_globals before_the_worker_starts;
}

// In one cache line: a fork reads and writes most of it.
alignas(64) running_state running{nullptr, nullptr, nullptr, &before_the_worker_starts,
                                  0,       0,       nullptr, 0};
job_view job;

}  // namespace sojourn::detail

// The linker's --wrap brings the compiler's calls for function-local statics here, so that a
// migration in the middle of an initialisation can be refused: otherwise the guard would stay
// locked for ever on the rank that the frames leave.
extern "C" {
int __real___cxa_guard_acquire(long long* guard);
void __real___cxa_guard_release(long long* guard);
void __real___cxa_guard_abort(long long* guard);

int __wrap___cxa_guard_acquire(long long* guard) {
  int initialise = __real___cxa_guard_acquire(guard);
  if (initialise) ++sojourn::detail::running.static_inits;
  return initialise;
}
void __wrap___cxa_guard_release(long long* guard) {
  __real___cxa_guard_release(guard);
  --sojourn::detail::running.static_inits;
}
void __wrap___cxa_guard_abort(long long* guard) {
  __real___cxa_guard_abort(guard);
  --sojourn::detail::running.static_inits;
}
}
