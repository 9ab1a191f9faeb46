// SPDX-License-Identifier: Apache-2.0
// Memory for containers of the runtime whose addresses may remain on fibers' stacks: it is the
// runtime's own memory, so that the scan of frames that migrate does not take these addresses for
// pointers of the program.
#pragma once

#include <memory_resource>

#include "memory/address_map.hpp"

namespace sojourn::detail {

/// Freed blocks are reused for other containers. Requires: the region is mapped.
inline std::pmr::memory_resource* runtime_resource() {
  class never_freed final : public std::pmr::memory_resource {
    void* do_allocate(std::size_t bytes, std::size_t) override { return runtime_memory(bytes); }
    void do_deallocate(void*, std::size_t, std::size_t) override {}
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
      return this == &other;
    }
  };
  // Never destroyed: other statics may use it until the end.
  static never_freed* upstream = new never_freed;
  static auto* pool = new std::pmr::unsynchronized_pool_resource(upstream);
  return pool;
}

}  // namespace sojourn::detail
