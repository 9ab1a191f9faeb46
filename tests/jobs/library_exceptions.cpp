// SPDX-License-Identifier: Apache-2.0
// Exceptions in a library that the program loads, which has a C++ runtime of its own: each fiber
// has its own. Usage: job_library_exceptions PLUG-IN
#include <dlfcn.h>
#include <sojourn/sojourn.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

using rethrown_function = long (*)(void (*)(long), long);
rethrown_function rethrown;

/// The one that caught first goes on last.
void wait(long x) { sleep_for(std::chrono::milliseconds(20 - 2 * x)); }

long here(long x) { return rethrown(wait, x); }

void fibers_in_its_catch_blocks_have_their_own_exceptions() {
  std::vector<future<long>> all;
  for (long x = 0; x < 8; ++x) all.push_back(rpc(rank_me(), here, x));
  for (long x = 0; x < 8; ++x) CHECK_EQUAL(all[static_cast<std::size_t>(x)].get(), x);
}

void threads_do_too() {
  long results[4] = {};
  std::vector<thread> all;
  for (long x = 0; x < 4; ++x)
    all.push_back(spawn(
        thread_options{.pinned = true},
        [](std::uintptr_t to, long n) { *reinterpret_cast<long*>(to) = here(n); },
        reinterpret_cast<std::uintptr_t>(&results[x]), x));
  for (thread& t : all) t.join();
  for (long x = 0; x < 4; ++x) CHECK_EQUAL(results[x], x);
}

/// The library's catch block is on the stack while the program throws and catches.
void nest(long x) {
  try {
    wait(x);
    throw std::runtime_error(std::to_string(x));
  } catch (const std::runtime_error& e) {
    wait(x + 1);
    CHECK_EQUAL(std::string(e.what()), std::to_string(x));
    CHECK_EQUAL(std::uncaught_exceptions(), 0);
  }
}

void exceptions_of_the_program_nest_in_the_librarys() {
  std::vector<future<long>> all;
  for (long x = 0; x < 6; ++x)
    all.push_back(rpc(rank_me(), [](long n) { return rethrown(nest, n); }, x));
  for (long x = 0; x < 6; ++x) CHECK_EQUAL(all[static_cast<std::size_t>(x)].get(), x);
}

}  // namespace

int main(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : nullptr;
  if (library == nullptr) {
    std::fprintf(stderr, "the plug-in cannot be loaded: %s\n", argc > 1 ? dlerror() : "no name");
    return 1;
  }
  rethrown = reinterpret_cast<rethrown_function>(dlsym(library, "rethrown"));
  return run(argc, argv, [] {
    check::claim("fibers in its catch blocks have their own exceptions",
                 fibers_in_its_catch_blocks_have_their_own_exceptions);
    check::claim("threads do, too", threads_do_too);
    check::claim("exceptions of the program nest in the library's",
                 exceptions_of_the_program_nest_in_the_librarys);
    return check::verdict();
  });
}
