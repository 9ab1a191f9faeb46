// SPDX-License-Identifier: Apache-2.0
// How C programs enter a job. All else of their interfaces lies on the floors below, but run()
// stands here: a program that a launcher of the site has started becomes a job first
// (stand_in.cpp).
#include <sojourn_shared.h>

#include <cstdlib>

#include "parmacs/processes.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/xthreads.h"

using namespace sojourn;

int xthread_main(int argc, char** argv, int (*body)(int argc, char** argv)) {
  return run(argc, argv, [&] { return body(argc, argv); });
}

int sojourn_shared_main(int argc, char** argv, int (*body)(int argc, char** argv)) {
  return run(argc, argv, [&] { return body(argc, argv); });
}

extern "C" {

/// The main() of a program that `sojourn cc` links, and what takes its place (--wrap=main).
[[gnu::weak]] int __real_main(int argc, char** argv, char** environment);
int __wrap_main(int argc, char** argv) {
  // Arrays of whole problems lie on the stacks of such programs.
  setenv("SOJOURN_STACK_KIB", "8192", 0);
  return run(argc, argv, [&] { return detail::run_processes(argc, argv, __real_main); });
}

}  // extern "C"
