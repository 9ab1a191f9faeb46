// SPDX-License-Identifier: Apache-2.0
// A library as any plug-in is: built without Sojourn's flags, with the shared libstdc++.

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
