// SPDX-License-Identifier: Apache-2.0
// Memory of objects in the global heap, for the rank's own thread alone.
#include "base/check.hpp"
#include "memory/global_heap.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/objects.hpp"

namespace sojourn::detail {

void* heap_allocate(std::size_t bytes, std::size_t alignment) {
  if (job.my_heap_bytes == 0) [[unlikely]]
    refuse_outside_job("an object in the global heap");
  check_thread();
  return take_from_heap(bytes, alignment);
}

void heap_free(void* object, std::size_t bytes, std::size_t alignment) {
  check_thread();
  give_to_heap(object, bytes, alignment);
}

}  // namespace sojourn::detail
