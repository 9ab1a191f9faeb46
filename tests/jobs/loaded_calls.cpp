// SPDX-License-Identifier: Apache-2.0
// A library that calls other ranks' functions, loaded before run() or, too late, inside.
// Usage: job_loaded_calls PLUG-IN [late]
#include <dlfcn.h>

#include <cstdio>

#include "check.hpp"

using namespace sojourn;

namespace {

using ask_function = long (*)(int rank, long x);

ask_function load(const char* name) {
  void* library = dlopen(name, RTLD_NOW);
  if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  return library == nullptr ? nullptr
                            : reinterpret_cast<ask_function>(dlsym(library, "ask_of_plug_in"));
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_late = argc > 2;
  ask_function ask = is_late ? nullptr : load(argv[1]);
  return run(argc, argv, [&] {
    if (is_late) ask = load(argv[1]);
    if (ask == nullptr) return 1;
    const rank_t next = (rank_me() + 1) % rank_count();
    CHECK_EQUAL(ask(next, 7), 700 + next);
    return check::verdict();
  });
}
