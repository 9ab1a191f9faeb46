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
  /// Its frames say that the runtime is at work, where the pool's own do not: a signal handler that
  /// finds no frame of the runtime may use this memory (shared/doorbell.hpp). So it must not leave
  /// by a jump.
  class named_pool final : public std::pmr::memory_resource {
   public:
    explicit named_pool(std::pmr::memory_resource* upstream) : pool_(upstream) {}

   private:
    void* do_allocate(std::size_t bytes, std::size_t align) override {
      void* const block = pool_.allocate(bytes, align);
      asm volatile("");
      return block;
    }
    void do_deallocate(void* block, std::size_t bytes, std::size_t align) override {
      pool_.deallocate(block, bytes, align);
      asm volatile("");
    }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
      return this == &other;
    }
    std::pmr::unsynchronized_pool_resource pool_;
  };
  // Never destroyed: other statics may use it until the end.
  static never_freed* upstream = new never_freed;
  static auto* resource = new named_pool(upstream);
  return resource;
}

}  // namespace sojourn::detail
