// SPDX-License-Identifier: Apache-2.0
#include "memory/global_heap.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <map>
#include <memory_resource>
#include <new>
#include <optional>

#include "base/check.hpp"
#include "memory/address_map.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/objects.hpp"

namespace sojourn::detail {

namespace {

constexpr std::size_t page = 4096;
// Runs at least this long give their memory back to the system when they are freed.
constexpr std::size_t give_back = 1u << 20;

/// Runs of pages, first fit by size, neighbours merged. Its records lie in private memory.
class page_runs final : public std::pmr::memory_resource {
 public:
  page_runs(std::uint64_t first, std::uint64_t bytes) : next_(first), end_(first + bytes) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (alignment > page) throw std::bad_alloc();
    bytes = (bytes + page - 1) / page * page;
    auto fit = by_size_.lower_bound(bytes);
    if (fit != by_size_.end()) {
      auto [run_bytes, address] = *fit;
      by_size_.erase(fit);
      by_address_.erase(address);
      if (run_bytes > bytes) insert(address + bytes, run_bytes - bytes);
      return reinterpret_cast<void*>(address);
    }
    if (bytes > end_ - next_) throw std::bad_alloc();
    std::uint64_t address = next_;
    next_ += bytes;
    return reinterpret_cast<void*>(address);
  }

  void do_deallocate(void* p, std::size_t bytes, std::size_t) override {
    std::uint64_t address = reinterpret_cast<std::uint64_t>(p);
    bytes = (bytes + page - 1) / page * page;
    // Shared pages: MADV_DONTNEED would only unmap them here.
    if (bytes >= give_back) madvise(p, bytes, MADV_REMOVE);
    auto after = by_address_.lower_bound(address);
    if (after != by_address_.end() && after->first == address + bytes) {
      bytes += after->second;
      after = erase(after);
    }
    if (after != by_address_.begin()) {
      auto before = std::prev(after);
      if (before->first + before->second == address) {
        address = before->first;
        bytes += before->second;
        erase(before);
      }
    }
    if (address + bytes == next_) {
      next_ = address;
    } else {
      insert(address, bytes);
    }
  }

  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  void insert(std::uint64_t address, std::size_t bytes) {
    by_address_.emplace(address, bytes);
    by_size_.emplace(bytes, address);
  }
  std::map<std::uint64_t, std::size_t>::iterator erase(
      std::map<std::uint64_t, std::size_t>::iterator run) {
    auto [first, last] = by_size_.equal_range(run->second);
    for (; first != last; ++first) {
      if (first->second == run->first) {
        by_size_.erase(first);
        break;
      }
    }
    return by_address_.erase(run);
  }

  std::uint64_t next_;
  std::uint64_t end_;
  std::map<std::uint64_t, std::size_t> by_address_;
  std::multimap<std::size_t, std::uint64_t> by_size_;
};

struct heap_state {
  page_runs runs;
  std::pmr::unsynchronized_pool_resource pools;
  std::size_t in_use = 0;

  explicit heap_state(std::uint64_t skip)
      : runs(job.my_heap + skip, job.my_heap_bytes - skip), pools(&runs) {}
};
// Never destroyed: objects may outlive main.
heap_state* heap;

}  // namespace

void attach_heap(std::uint64_t secret) {
  std::uint64_t skip = checked() ? secret % (job.my_heap_bytes / page / 16) * page : 0;
  heap = ::new (runtime_memory(sizeof(heap_state))) heap_state(skip);
}

std::size_t heap_bytes_in_use() { return heap->in_use; }

void* heap_allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes > job.my_heap_bytes) throw std::bad_alloc();
  void* p = heap->pools.allocate(bytes, alignment);
  heap->in_use += bytes;
  return p;
}

void heap_free(void* object, std::size_t bytes, std::size_t alignment) {
  heap->pools.deallocate(object, bytes, alignment);
  heap->in_use -= bytes;
}

}  // namespace sojourn::detail
