// SPDX-License-Identifier: Apache-2.0
// Memory for containers of the runtime whose addresses may remain on fibers' stacks: it is the
// runtime's own memory, so that the scan of frames that migrate does not take these addresses for
// pointers of the program.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <memory_resource>
#include <new>
#include <utility>

#include "memory/address_map.hpp"

namespace sojourn::detail {

/// Where the pool gets its memory: chunks for blocks of all sizes up to some megabytes, which the
/// pool keeps, and a block of its own for each longer request. Freed blocks are kept by length, in
/// eight steps between two powers of two, and reused for requests of the same step.
class long_blocks final : public std::pmr::memory_resource {
 public:
  /// `bytes`, rounded up to the end of its step.
  static std::size_t whole(std::size_t bytes) {
    const std::size_t step = std::bit_floor(std::max(bytes, least)) / 8;
    return (bytes + step - 1) / step * step;
  }

 private:
  static constexpr std::size_t least = 4096;
  struct free_block {
    free_block* next;
  };

  void* do_allocate(std::size_t bytes, std::size_t) override {
    bytes = whole(bytes);
    free_block*& first = first_of(bytes);
    if (first == nullptr) return runtime_memory(bytes);
    return std::exchange(first, first->next);
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t) override {
    free_block*& first = first_of(whole(bytes));
    first = ::new (block) free_block{first};
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
  /// The list of free blocks of this length. Requires: `bytes` is a power of two, or some eighths
  /// more.
  free_block*& first_of(std::size_t bytes) {
    const auto power = static_cast<std::size_t>(std::bit_width(bytes)) - 1;
    return free_[8 * power + (bytes >> (power - 3)) % 8];
  }

  std::array<free_block*, 8 * 64> free_ = {};
};

/// How many bytes to ask a pool of the standard library for. The pool of libstdc++ aligns a block
/// only as its size is aligned, whatever alignment was asked for, so the size is made a multiple of
/// the alignment.
constexpr std::size_t bytes_for_pool(std::size_t bytes, std::size_t align) {
  return (bytes + align - 1) / align * align;
}

/// Freed blocks are reused for other containers. Requires: the region is mapped.
inline std::pmr::memory_resource* runtime_resource() {
  /// Gives the pool's functions a caller that is a function of the runtime: a signal handler that
  /// finds no frame of the runtime on the stack may use this memory (shared/doorbell.hpp), and must
  /// not do so in the middle of the pool. So these functions must not end with a jump to the
  /// pool's.
  class named_pool final : public std::pmr::memory_resource {
   public:
    explicit named_pool(std::pmr::memory_resource* upstream) : pool_(upstream) {}

   private:
    void* do_allocate(std::size_t bytes, std::size_t align) override {
      void* const block = pool_.allocate(bytes_for_pool(bytes, align), align);
      asm volatile("");
      return block;
    }
    void do_deallocate(void* block, std::size_t bytes, std::size_t align) override {
      pool_.deallocate(block, bytes_for_pool(bytes, align), align);
      asm volatile("");
    }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
      return this == &other;
    }
    std::pmr::unsynchronized_pool_resource pool_;
  };
  // Never destroyed, because other statics may use it until the end.
  static auto* upstream = new long_blocks;
  static auto* resource = new named_pool(upstream);
  return resource;
}

/// Base of classes whose objects `new` makes in the runtime's memory.
struct in_runtime_memory {
  static void* operator new(std::size_t bytes) {
    return runtime_resource()->allocate(bytes, alignof(std::max_align_t));
  }
  static void operator delete(void* object, std::size_t bytes) {
    runtime_resource()->deallocate(object, bytes, alignof(std::max_align_t));
  }
};

/// Uninitialised bytes of a resource, which are given back at the end; or none.
class plain_bytes {
 public:
  plain_bytes() = default;
  plain_bytes(std::pmr::memory_resource* memory, std::size_t size)
      : memory_(memory), size_(size), first_(static_cast<std::byte*>(memory->allocate(size))) {}
  plain_bytes(plain_bytes&& from) noexcept
      : memory_(from.memory_), size_(from.size_), first_(std::exchange(from.first_, nullptr)) {}
  plain_bytes& operator=(plain_bytes&& from) noexcept {
    std::swap(memory_, from.memory_);
    std::swap(size_, from.size_);
    std::swap(first_, from.first_);
    return *this;
  }
  ~plain_bytes() {
    if (first_ != nullptr) memory_->deallocate(first_, size_);
  }

  std::byte* get() const { return first_; }

 private:
  std::pmr::memory_resource* memory_ = nullptr;
  std::size_t size_ = 0;
  std::byte* first_ = nullptr;
};

}  // namespace sojourn::detail
