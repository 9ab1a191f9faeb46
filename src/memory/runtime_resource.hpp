// SPDX-License-Identifier: Apache-2.0
// Containers of the runtime whose addresses may be left on fibers' stacks: in the runtime's own
// memory, where the scan of frames that migrate does not take them for the program's.
#pragma once

#include <memory_resource>

#include "memory/address_map.hpp"

namespace sojourn::detail {

/// Memory for them; what is freed is used again by others. Requires: the region is mapped.
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
