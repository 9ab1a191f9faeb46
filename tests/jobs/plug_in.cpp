// SPDX-License-Identifier: Apache-2.0
// A library as any plug-in is: built without Sojourn's flags, with the shared libstdc++.
#include <signal.h>

/// Calls wait(x) while it handles an exception, and returns what `throw;` then throws again.
extern "C" long rethrown(void (*wait)(long), long x) {
  try {
    throw x;
  } catch (...) {
    wait(x);
    try {
      throw;
    } catch (long caught) {
      return caught;
    }
  }
}

/// Installs a handler, as a library that reports crashes does.
extern "C" int handles(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  return sigaction(signal, &action, nullptr);
}
