// SPDX-License-Identifier: Apache-2.0
#include "memory/global_heap.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <new>
#include <optional>

#include "base/check.hpp"
#include "base/saved_file.hpp"
#include "memory/address_map.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

std::size_t heap_bytes_kept = 0;

namespace {

constexpr std::size_t page = 4096;
// Freed runs at least this long give their memory back to the system, sooner or later.
constexpr std::size_t give_back = 1u << 20;
// How many bytes of these runs are kept for reuse: this many, or half of the bytes in use if that
// is more.
constexpr std::size_t kept_least = 64u << 20;
constexpr std::uint64_t kept_ns = 1'000'000'000;
// A core dump covers at least this much beyond what was used.
constexpr std::size_t least_dumped = 1u << 20;

/// Runs of pages, best fit, neighbours merged. The records lie in private memory.
class page_runs final : public std::pmr::memory_resource {
 public:
  page_runs(std::uint64_t first, std::uint64_t bytes)
      : first_(first), next_(first), high_(first), dumped_(first), end_(first + bytes) {}

  /// Writes the table of free runs, and then each run of pages that hold something, preceded by its
  /// address and length.
  void save(file_writer& to) const {
    to.put(next_);
    to.put(by_address_.size());
    std::uint64_t from = first_;
    for (auto [address, bytes] : by_address_) to.put(run{address, bytes});
    for (auto [address, bytes] : by_address_) {
      save_pages(to, from, address);
      from = address + bytes;
    }
    save_pages(to, from, next_);
    to.put(run{0, 0});
  }
  void load(file_reader& from) {
    from.get(next_);
    high_ = next_;
    in_use_ = next_ - first_;
    want_in_cores();
    by_address_.clear();
    by_size_.clear();
    for (auto n = from.get<std::size_t>(); n > 0; --n) {
      auto [address, bytes] = from.get<run>();
      insert(address, bytes);
      in_use_ -= bytes;
    }
    for (run r; (r = from.get<run>()).bytes > 0;) {
      from.bytes(reinterpret_cast<void*>(r.address), r.bytes);
    }
  }

  void trim_when_old() {
    if (now_ns() - freed_ns_ >= kept_ns) trim();
  }

 private:
  struct run {
    std::uint64_t address;
    std::uint64_t bytes;
  };

  static bool is_zero(std::uint64_t address) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(address);
    return std::all_of(words, words + page / sizeof *words, [](std::uint64_t w) { return w == 0; });
  }
  /// Pages of zeros are left out: a fresh partition has zeros there.
  static void save_pages(file_writer& to, std::uint64_t from, std::uint64_t end) {
    while (from < end) {
      while (from < end && is_zero(from)) from += page;
      std::uint64_t until = from;
      while (until < end && !is_zero(until)) until += page;
      if (until == from) break;
      to.put(run{from, until - from});
      to.bytes(reinterpret_cast<const void*>(from), until - from);
      from = until;
    }
  }

  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (alignment > page) throw std::bad_alloc();
    bytes = (bytes + page - 1) / page * page;
    if (bytes >= give_back) heap_bytes_kept -= std::min(heap_bytes_kept, bytes);
    in_use_ += bytes;
    auto fit = by_size_.lower_bound(bytes);
    if (fit != by_size_.end()) {
      auto [run_bytes, address] = *fit;
      by_size_.erase(fit);
      by_address_.erase(address);
      if (run_bytes > bytes) insert(address + bytes, run_bytes - bytes);
      return reinterpret_cast<void*>(address);
    }
    if (bytes > end_ - next_) {
      in_use_ -= bytes;
      throw std::bad_alloc();
    }
    std::uint64_t address = next_;
    next_ += bytes;
    high_ = std::max(high_, next_);
    if (next_ > dumped_) want_in_cores();
    return reinterpret_cast<void*>(address);
  }

  void do_deallocate(void* p, std::size_t bytes, std::size_t) override {
    std::uint64_t address = reinterpret_cast<std::uint64_t>(p);
    bytes = (bytes + page - 1) / page * page;
    in_use_ -= bytes;
    const bool is_long = bytes >= give_back;
    if (is_long) {
      heap_bytes_kept += bytes;
      freed_ns_ = now_ns();
    }
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
    if (is_long && heap_bytes_kept > std::max(kept_least, in_use_ / 2)) trim();
  }

  /// Gives back the memory of long free runs.
  void trim() {
    // The pages are shared: MADV_DONTNEED would unmap them here, and not free them.
    for (auto [address, bytes] : by_address_) {
      if (bytes >= give_back) madvise(reinterpret_cast<void*>(address), bytes, MADV_REMOVE);
    }
    if (high_ > next_) madvise(reinterpret_cast<void*>(next_), high_ - next_, MADV_REMOVE);
    high_ = next_;
    heap_bytes_kept = 0;
  }

  /// Has core dumps of this rank contain what is in use, and some more, because each extension is a
  /// system call.
  void want_in_cores() {
    std::uint64_t step = std::max<std::uint64_t>(least_dumped, (next_ - first_) / 8);
    std::uint64_t until = next_ + std::min(end_ - next_, step / page * page);
    if (until <= dumped_) return;
    madvise(reinterpret_cast<void*>(dumped_), until - dumped_, MADV_DODUMP);
    dumped_ = until;
  }

  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  void insert(std::uint64_t address, std::size_t bytes) {
    by_address_.emplace(address, bytes);
    by_size_.emplace(bytes, address);
  }
  std::map<std::uint64_t, std::size_t>::iterator erase(
      std::map<std::uint64_t, std::size_t>::iterator free_run) {
    auto [first, last] = by_size_.equal_range(free_run->second);
    for (; first != last; ++first) {
      if (first->second == free_run->first) {
        by_size_.erase(first);
        break;
      }
    }
    return by_address_.erase(free_run);
  }

  std::uint64_t first_;
  std::uint64_t next_;
  std::uint64_t high_;          ///< Nothing has memory from here on.
  std::size_t in_use_ = 0;      ///< Bytes of runs that are not free.
  std::uint64_t freed_ns_ = 0;  ///< When a long run was last freed.
  std::uint64_t dumped_;        ///< Core dumps cover the partition up to here.
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

// The pools keep their records in pages of the runs and refer to them by address. So the pools are
// restored byte for byte at their old address, like every object of the program.
void save_heap(file_writer& to) {
  to.put(reinterpret_cast<std::uint64_t>(heap));
  to.put(heap->in_use);
  heap->runs.save(to);
  to.bytes(&heap->pools, sizeof heap->pools);
}

void load_heap(file_reader& from) {
  if (from.get<std::uint64_t>() != reinterpret_cast<std::uint64_t>(heap)) {
    throw error("the runtime's own tables lie at other addresses");
  }
  from.get(heap->in_use);
  heap->runs.load(from);
  from.bytes(static_cast<void*>(&heap->pools), sizeof heap->pools);
}

void trim_heap() { heap->runs.trim_when_old(); }

std::size_t heap_bytes_in_use() { return heap->in_use; }

void* take_from_heap(std::size_t bytes, std::size_t alignment) {
  if (bytes > job.my_heap_bytes) throw std::bad_alloc();
  void* p = heap->pools.allocate(bytes, alignment);
  heap->in_use += bytes;
  return p;
}

void give_to_heap(void* memory, std::size_t bytes, std::size_t alignment) {
  heap->pools.deallocate(memory, bytes, alignment);
  heap->in_use -= bytes;
}

}  // namespace sojourn::detail
