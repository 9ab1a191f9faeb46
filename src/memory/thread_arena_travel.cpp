// SPDX-License-Identifier: Apache-2.0
// How a thread's heap moves to another rank, or into a checkpoint, and how it ends.

#include <algorithm>
#include <vector>

#include "base/check.hpp"
#include "base/saved_file.hpp"
#include "memory/thread_arena.hpp"
#include "memory/thread_arena_extent.hpp"

namespace sojourn::detail {

using namespace arena;

namespace {

// Gaps up to this length between used ranges are copied, too, because another range would cost
// more.
constexpr std::uint64_t gap_bytes_max = 64;

}  // namespace

/// Calls f(page_range) by extents, and by addresses within each. The unused rest of a slab is left
/// out.
template <class F>
void thread_arena::for_each_used_range(F f) const {
  for (extent* e = first_; e != nullptr; e = e->next) {
    std::uint64_t begin = e->address();
    std::uint64_t end = begin + e->record_bytes();
    auto add = [&](std::uint64_t from, std::uint64_t to) {
      if (from - end > gap_bytes_max) {
        f(page_range{begin, end - begin});
        begin = from;
      }
      end = to;
    };
    std::uint64_t i = e->record_pages();
    while ((i = next_bit<true>(e->used(), i, e->touched)) < e->touched) {
      std::uint64_t at = e->address() + i * page;
      if (bit(e->slabs(), i)) {
        auto* s = reinterpret_cast<const slab*>(at);
        add(at,
            at + first_block(s->size_class) + std::size_t{s->carved} * class_bytes[s->size_class]);
        ++i;
      } else {
        std::uint64_t run_end = next_bit<false>(e->used(), i, e->touched);
        run_end = next_bit<true>(e->slabs(), i, run_end);
        add(at, at + (run_end - i) * page);
        i = run_end;
      }
    }
    f(page_range{begin, end - begin});
  }
}

arena_descriptor thread_arena::describe() {
  free_empty_slabs();
  arena_descriptor d{reinterpret_cast<std::uint64_t>(this), 0, 0, 0};
  for (extent* e = first_; e != nullptr; e = e->next) ++d.extents;
  for_each_used_range([&](page_range r) {
    ++d.ranges;
    d.bytes += r.bytes;
  });
  return d;
}

void thread_arena::list(page_range* table) const {
  for (extent* e = first_; e != nullptr; e = e->next) *table++ = {e->address(), e->bytes()};
  for_each_used_range([&](page_range r) { *table++ = r; });
}

std::vector<extent_use> thread_arena::extents_in_use() const {
  std::vector<extent_use> all;
  for (extent* e = first_; e != nullptr; e = e->next) {
    all.push_back({e->address(), e->bytes(), std::uint64_t{e->touched} * page});
  }
  return all;
}

void thread_arena::leave(const std::vector<extent_use>& left) {
  for (const extent_use& e : left) extents.retire(e.address, e.bytes, e.touched);
}

thread_arena* thread_arena::arrive(const arena_descriptor& descriptor, const page_range* table) {
  // The table came from another process: every address in it is checked.
  const page_range* ranges = table + descriptor.extents;
  std::uint32_t covered = 0;
  bool right = descriptor.extents > 0 && descriptor.arena == table[0].address + sizeof(extent);
  for (std::uint32_t i = 0; i < descriptor.extents; ++i) {
    const auto& [address, bytes] = table[i];
    right = right && addresses.in_arenas(address) && address % first_extent_bytes == 0 &&
            bytes > 0 && bytes % first_extent_bytes == 0 &&
            bytes <= std::uint64_t{1} << addresses.arenas_shift &&
            addresses.in_arenas(address + bytes - 1);
    for (; covered < descriptor.ranges; ++covered) {
      std::uint64_t offset = ranges[covered].address - address;
      if (offset >= bytes || ranges[covered].bytes > bytes - offset) break;
    }
  }
  SOJOURN_CHECK(right && covered == descriptor.ranges,
                "the table of a thread's heap at 0x%llx, of %u extents and %u ranges, is damaged",
                static_cast<unsigned long long>(descriptor.arena), descriptor.extents,
                descriptor.ranges);
  for (std::uint32_t i = 0; i < descriptor.extents; ++i) {
    extents.open(table[i].address, table[i].bytes);
  }
  return reinterpret_cast<thread_arena*>(descriptor.arena);
}

void thread_arena::save(file_writer& to) {
  arena_descriptor descriptor = describe();
  std::vector<page_range> table(descriptor.entries());
  list(table.data());
  to.put(descriptor);
  to.bytes(table.data(), table.size() * sizeof(page_range));
  for (std::size_t i = descriptor.extents; i < table.size(); ++i) {
    to.bytes(reinterpret_cast<const void*>(table[i].address), table[i].bytes);
  }
}

thread_arena* thread_arena::load(file_reader& from) {
  auto descriptor = from.get<arena_descriptor>();
  std::vector<page_range> table(descriptor.entries());
  from.bytes(table.data(), table.size() * sizeof(page_range));
  thread_arena* arena = arrive(descriptor, table.data());
  for (std::size_t i = descriptor.extents; i < table.size(); ++i) {
    from.bytes(reinterpret_cast<void*>(table[i].address), table[i].bytes);
  }
  return arena;
}

std::vector<page_range> thread_arena::end(thread_arena* arena) {
  std::vector<page_range> foreign;
  for (extent* e = arena->first_; e != nullptr; e = e->next) {
    if (!extents.is_home(e->address())) foreign.push_back({e->address(), e->bytes()});
  }
  std::sort(foreign.begin(), foreign.end(),
            [](const page_range& a, const page_range& b) { return a.address < b.address; });
  for (extent* e = arena->first_; e != nullptr;) {
    extent* next = e->next;
    std::uint64_t address = e->address();
    std::uint64_t bytes = e->bytes();
    extents.retire(address, bytes, std::uint64_t{e->touched} * page);
    if (extents.is_home(address)) extents.give_back(address, bytes);
    e = next;
  }
  return foreign;
}

}  // namespace sojourn::detail
