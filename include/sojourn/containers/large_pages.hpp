// SPDX-License-Identifier: Apache-2.0
// Memory for tables that are read at random.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace sojourn::containers {

/// Asks the system for large pages where a block is long: a table that is larger than what the
/// processor has the addresses of at hand would otherwise wait for these at each access.
template <class T>
struct large_page_allocator {
  using value_type = T;

  large_page_allocator() = default;
  template <class U>
  constexpr large_page_allocator(const large_page_allocator<U>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < least) return static_cast<T*>(::operator new(bytes, std::align_val_t{alignof(T)}));
    void* const room = ::operator new(bytes, std::align_val_t{page});
    ::madvise(room, bytes, MADV_HUGEPAGE);  // If it is refused, small ones will do.
    return static_cast<T*>(room);
  }
  void deallocate(T* room, std::size_t count) {
    const bool is_long = count * sizeof(T) >= least;
    ::operator delete(room, std::align_val_t{is_long ? page : alignof(T)});
  }
  template <class U>
  friend constexpr bool operator==(const large_page_allocator&, const large_page_allocator<U>&) {
    return true;
  }

 private:
  static constexpr std::size_t page = std::size_t{2} << 20;
  static constexpr std::size_t least = 2 * page;
};

}  // namespace sojourn::containers
