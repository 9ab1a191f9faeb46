// SPDX-License-Identifier: Apache-2.0
#include "migrate/thread_table.hpp"

#include <utility>

#include "memory/runtime_resource.hpp"

namespace sojourn::detail {

thread_table threads_here;

void thread_table::grow() {
  const std::size_t old_size = std::exchange(size_, size_ == 0 ? 256 : 2 * size_);
  piece** const old = std::exchange(buckets_, runtime_array<piece*>(size_));
  for (std::size_t i = 0; i < old_size; ++i) {
    for (piece* p = old[i]; p != nullptr;) {
      piece* next = p->next_thread;
      add(p);
      p = next;
    }
  }
}

}  // namespace sojourn::detail
