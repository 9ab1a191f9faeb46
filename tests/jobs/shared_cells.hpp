// SPDX-License-Identifier: Apache-2.0
// The least that shows that shared memory works: each rank stores to a page, and loads all of them.
#pragma once

#include "check.hpp"

inline void pages_are_shared() {
  auto cells = sojourn::broadcast(
      sojourn::rank_me() == 0 ? sojourn::shared::pointer<long>(sojourn::shared::alloc<long>(8192))
                              : sojourn::shared::pointer<long>());
  cells[512 * sojourn::rank_me()] = sojourn::rank_me() + 1;
  sojourn::shared::barrier();
  long sum = 0;
  for (int r = 0; r < sojourn::rank_count(); ++r) sum += cells[512 * r];
  CHECK_EQUAL(sum, sojourn::rank_count() * (sojourn::rank_count() + 1) / 2);
  sojourn::shared::barrier();
}
