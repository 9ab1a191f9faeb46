// SPDX-License-Identifier: Apache-2.0
#include "fiber/language_locks.hpp"

namespace sojourn::detail {

constinit std::array<language_lock, 64> language_locks;

language_lock* find_lock(const void* object) {
  for (language_lock& each : language_locks)
    if (each.object == object) return &each;
  return nullptr;
}

const piece* initialiser_of(const waiters* queue) {
  for (const language_lock& each : language_locks)
    if (&each == queue) return each.owner;
  return nullptr;
}

unsigned divide_initialisations(const piece* older, const piece* younger) {
  unsigned of_younger = 0;
  for (language_lock& each : language_locks) {
    if (each.object == nullptr || each.owner != older || each.frame >= younger->hi) continue;
    each.owner = younger;
    ++of_younger;
  }
  return of_younger;
}

}  // namespace sojourn::detail
