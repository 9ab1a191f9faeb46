// SPDX-License-Identifier: Apache-2.0
#include "shared/memory_or_end.hpp"

#include <new>

#include "base/check.hpp"
#include "memory/runtime_resource.hpp"

namespace sojourn::detail::pages {

namespace {

class ending_resource final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t align) override {
    try {
      return runtime_resource()->allocate(bytes, align);
    } catch (const std::bad_alloc&) {
      die("out of memory: the system has none for what shared memory keeps of changes (%zu bytes "
          "more): give the job more memory, or set SOJOURN_SHARED_DIFFS to a smaller number",
          bytes);
    }
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t align) override {
    runtime_resource()->deallocate(block, bytes, align);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
};

}  // namespace

std::pmr::memory_resource* memory_or_end() {
  static auto* const never_destroyed = new ending_resource;
  return never_destroyed;
}

}  // namespace sojourn::detail::pages
