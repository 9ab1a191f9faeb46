// SPDX-License-Identifier: Apache-2.0
// Memory for results that do not fit a ticket. Blocks that were given back are used again, so that
// calls in the steady state allocate nothing.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace sojourn::detail {

/// The sizes of blocks are powers of two. Some free blocks of each size are kept; long blocks are
/// not.
class result_memory {
 public:
  /// Throws std::bad_alloc.
  std::byte* take(std::size_t bytes) {
    const std::size_t size = size_of(bytes);
    if (size <= kept_bytes_max) {
      free_block*& first = free_[place(size)].first;
      if (first != nullptr) {
        free_block* taken = first;
        first = taken->next;
        --free_[place(size)].count;
        return reinterpret_cast<std::byte*>(taken);
      }
    }
    void* memory = std::malloc(size);
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<std::byte*>(memory);
  }
  /// `bytes`: as many as were asked for.
  void give_back(void* memory, std::size_t bytes) {
    const std::size_t size = size_of(bytes);
    if (size > kept_bytes_max || (free_[place(size)].count + 1) * size > kept_of_a_size) {
      return std::free(memory);
    }
    free_list& list = free_[place(size)];
    list.first = ::new (memory) free_block{list.first};
    ++list.count;
  }

 private:
  static constexpr std::size_t least = 128;
  static constexpr std::size_t kept_bytes_max = 64u << 10;
  static constexpr std::size_t kept_of_a_size = 256u << 10;
  struct free_block {
    free_block* next;
  };
  struct free_list {
    free_block* first = nullptr;
    std::size_t count = 0;
  };

  static std::size_t size_of(std::size_t bytes) {
    return bytes > kept_bytes_max ? bytes : std::bit_ceil(bytes < least ? least : bytes);
  }
  static std::size_t place(std::size_t size) {
    return static_cast<std::size_t>(std::countr_zero(size) - std::countr_zero(least));
  }

  std::array<free_list, 10> free_;
};
inline result_memory results;

}  // namespace sojourn::detail
