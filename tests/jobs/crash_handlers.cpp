// SPDX-License-Identifier: Apache-2.0
// Programs and libraries that install handlers of crashes in the middle of a job, as crash
// reporters do: shared memory goes on, and a crash reaches them. Usage: job_crash_handlers PLUG-IN
// [crash]
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <csetjmp>
#include <cstdio>
#include <string>

#include "check.hpp"
#include "shared_cells.hpp"

using namespace sojourn;

namespace {

using handles_function = int (*)(int signal, void (*handler)(int));
handles_function library_handles;

void tell(int signal) {
  (void)!write(2, "the program's own handler\n", 26);
  // As crash reporters end: by what would have been without them.
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
}

void handlers_of_the_program_leave_shared_memory_alone() {
  for (int s : {SIGSEGV, SIGBUS}) handle(s, tell, static_cast<int>(SA_ONSTACK | SA_RESETHAND));
  pages_are_shared();
  for (int s : {SIGSEGV, SIGBUS}) signal(s, tell);
  pages_are_shared();
  for (int s : {SIGSEGV, SIGBUS}) CHECK(signal(s, SIG_DFL) == tell);
  pages_are_shared();
}

void handlers_of_a_library_do_too() {
  for (int s : {SIGSEGV, SIGBUS}) CHECK_EQUAL(library_handles(s, tell), 0);
  pages_are_shared();
  for (int s : {SIGSEGV, SIGBUS}) CHECK(signal(s, SIG_DFL) == tell);
}

sigjmp_buf before_fault;

/// As interpreters do with their own stacks, and collectors of garbage with their own pages.
void a_program_may_take_its_own_faults() {
  handle(SIGSEGV, [](int) { siglongjmp(before_fault, 1); }, SA_ONSTACK);
  static volatile int taken;
  taken = 0;
  // The second one comes only if the jump has unblocked the signal.
  while (taken < 2) {
    if (sigsetjmp(before_fault, 1) == 0) {
      *reinterpret_cast<volatile int*>(8) = 1;
    } else {
      taken = taken + 1;
    }
  }
  CHECK_EQUAL(int{taken}, 2);
  pages_are_shared();
  signal(SIGSEGV, SIG_DFL);
}

}  // namespace

int main(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : nullptr;
  if (library == nullptr) {
    std::fprintf(stderr, "the plug-in cannot be loaded: %s\n", argc > 1 ? dlerror() : "no name");
    return 1;
  }
  library_handles = reinterpret_cast<handles_function>(dlsym(library, "handles"));
  const std::string what = argc > 2 ? argv[2] : "";
  return run(argc, argv, [&] {
    check::claim("handlers of the program leave shared memory alone",
                 handlers_of_the_program_leave_shared_memory_alone);
    check::claim("handlers of a library do, too", handlers_of_a_library_do_too);
    check::claim("a program may take its own faults", a_program_may_take_its_own_faults);
    if (what == "crash") {
      handle(SIGSEGV, tell, SA_ONSTACK);
      if (rank_me() == 0) *static_cast<volatile int*>(nullptr) = 1;
      barrier();
    }
    return check::verdict();
  });
}
