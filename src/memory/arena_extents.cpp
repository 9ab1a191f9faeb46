// SPDX-License-Identifier: Apache-2.0
#include "memory/arena_extents.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

#include "base/check.hpp"
#include "base/saved_file.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

arena_extents extents;

namespace {

// Extents become accessible in chunks of this size, so that the mapping is split rarely.
constexpr unsigned chunk_shift = 24;
constexpr std::uint64_t chunk_bytes = std::uint64_t{1} << chunk_shift;
// Retired extents keep at most this much memory, about a thousand small heaps; beyond that, the
// older half of it is given back.
constexpr std::uint64_t warm_bytes_max = 8u << 20;
// A retired extent that used at least this much gives it back at once: that costs little beside
// filling it.
constexpr std::uint64_t cold_at_once = 1u << 20;

// What a rank knows of a granule, as bits.
constexpr std::uint8_t taken = 1;   // in this rank's partition, and handed out
constexpr std::uint8_t live = 2;    // holds a thread's data on this rank
constexpr std::uint8_t warm = 4;    // listed as a granule that may hold memory nobody uses
constexpr std::uint8_t sealed = 8;  // checked mode: inaccessible

char* at(std::uint64_t address) { return reinterpret_cast<char*>(address); }

std::uint32_t granule_count(std::uint64_t bytes) {
  return static_cast<std::uint32_t>((bytes + arena_extents::granule_bytes - 1) >>
                                    arena_extents::granule_shift);
}
std::uint32_t granule_of(std::uint64_t address) {
  return static_cast<std::uint32_t>((address - addresses.arenas) >> arena_extents::granule_shift);
}
std::uint64_t address_of(std::uint32_t granule) {
  return addresses.arenas + (std::uint64_t{granule} << arena_extents::granule_shift);
}

}  // namespace

// Called at the first use: a job whose threads have no heaps pays nothing.
void arena_extents::attach() {
  rank_ = static_cast<std::uint64_t>(job.me);
  top_order_ = addresses.arenas_shift - granule_shift;
  granules_ = static_cast<std::uint8_t*>(runtime_memory(addresses.unit >> granule_shift));
  chunks_ = static_cast<std::uint8_t*>(
      runtime_memory(std::max<std::uint64_t>(addresses.unit >> chunk_shift, 1)));
  blocks_ = static_cast<block*>(runtime_memory(sizeof(block) << top_order_));
  // A huge page takes milliseconds at first touch, and 2 MiB; most heaps of threads are small.
  madvise(at(addresses.arenas), addresses.unit, MADV_NOHUGEPAGE);
  std::fill_n(heads_, orders_max, none);
  link(0, top_order_);
}

void arena_extents::link(std::uint32_t first, unsigned order) {
  std::uint32_t next = heads_[order];
  blocks_[first] = {next, none, static_cast<std::uint8_t>(order + 1)};
  if (next != none) blocks_[next].previous = first;
  heads_[order] = first;
}

void arena_extents::unlink(std::uint32_t first) {
  block& b = blocks_[first];
  if (b.next != none) blocks_[b.next].previous = b.previous;
  if (b.previous != none) {
    blocks_[b.previous].next = b.next;
  } else {
    heads_[b.order_plus_one - 1] = b.next;
  }
  b.order_plus_one = 0;
}

/// A buddy allocator: a range is split into blocks of 2^n granules that begin at a multiple of
/// their length, and a block whose buddy is free merges with it.
void arena_extents::free_range(std::uint32_t first, std::uint32_t count) {
  while (count > 0) {
    auto order = static_cast<unsigned>(std::bit_width(count)) - 1;
    if (first != 0) order = std::min(order, static_cast<unsigned>(std::countr_zero(first)));
    std::uint32_t block_first = first;
    first += 1u << order;
    count -= 1u << order;
    while (order < top_order_) {
      std::uint32_t buddy = block_first ^ (1u << order);
      if (blocks_[buddy].order_plus_one != order + 1) break;
      unlink(buddy);
      block_first = std::min(block_first, buddy);
      ++order;
    }
    link(block_first, order);
  }
}

/// Takes a range that begins with a free block off the lists; `none` when there is no such
/// range.
std::uint32_t arena_extents::take_range(std::uint32_t count) {
  auto wanted = static_cast<unsigned>(std::bit_width(count - 1));
  unsigned order = wanted;
  while (order <= top_order_ && heads_[order] == none) ++order;
  std::uint32_t first = none;
  std::uint32_t length = 0;
  if (order <= top_order_) {
    first = heads_[order];
  } else {
    // No single block is long enough, but several adjoining ones may be. Searching for them is
    // slow, but better than failing.
    std::uint32_t granules = 1u << top_order_;
    for (std::uint32_t i = 0; i < granules && length < count;) {
      if (unsigned o = blocks_[i].order_plus_one; o != 0) {
        if (length == 0) first = i;
        length += 1u << (o - 1);
        i += 1u << (o - 1);
      } else {
        length = 0;
        ++i;
      }
    }
    if (length < count) return none;
  }
  for (length = 0; length < count;) {
    std::uint32_t block_first = first + length;
    length += 1u << (blocks_[block_first].order_plus_one - 1);
    unlink(block_first);
  }
  free_range(first + count, length - count);
  return first;
}

std::uint64_t arena_extents::take(std::uint64_t bytes) {
  if (granules_ == nullptr) [[unlikely]]
    attach();
  if (bytes == 0 || bytes > std::uint64_t{1} << addresses.arenas_shift) return 0;
  std::uint32_t count = granule_count(bytes);
  std::uint32_t first = take_range(count);
  if (first == none) return 0;

  std::uint64_t address = addresses.arenas + (rank_ << addresses.arenas_shift) +
                          (std::uint64_t{first} << granule_shift);
  try {
    open(address, bytes);
  } catch (...) {
    free_range(first, count);
    throw;
  }
  std::uint8_t* state = granules_ + granule_of(address);
  for (std::uint32_t i = 0; i < count; ++i) state[i] |= taken;
  bytes_taken_ += std::uint64_t{count} << granule_shift;
  return address;
}

void arena_extents::give_back(std::uint64_t address, std::uint64_t bytes) {
  std::uint32_t count = granule_count(bytes);
  SOJOURN_CHECK(granules_ != nullptr && addresses.in_arenas(address) && is_home(address) &&
                    address % granule_bytes == 0 && bytes > 0 && is_home(address + bytes - 1) &&
                    bytes <= bytes_taken_,
                "%llu bytes at 0x%llx are not an extent of rank %d",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address),
                job.me);
  std::uint8_t* state = granules_ + granule_of(address);
  for (std::uint32_t i = 0; i < count; ++i) {
    SOJOURN_CHECK((state[i] & (taken | live)) == taken, "the extent at 0x%llx is %s",
                  static_cast<unsigned long long>(address),
                  (state[i] & taken) != 0 ? "given back while it is in use" : "given back twice");
    state[i] &= static_cast<std::uint8_t>(~taken);
  }
  std::uint32_t partition_first = static_cast<std::uint32_t>(rank_ << top_order_);
  free_range(granule_of(address) - partition_first, count);
  bytes_taken_ -= std::uint64_t{count} << granule_shift;
}

void arena_extents::save(file_writer& to) const {
  std::uint32_t granules = granules_ == nullptr ? 0 : 1u << top_order_;
  const std::uint8_t* state = granules_ + (rank_ << top_order_);
  for (std::uint32_t i = 0; i < granules;) {
    std::uint32_t j = i;
    while (j < granules && (state[j] & taken) != 0) ++j;
    if (j > i) {
      to.put(i);
      to.put(j - i);
    }
    i = j + 1;
  }
  to.put(none);
}

void arena_extents::load(file_reader& from) {
  auto first = from.get<std::uint32_t>();
  if (first == none) return;
  if (granules_ == nullptr) attach();
  unlink(0);
  std::uint8_t* state = granules_ + (rank_ << top_order_);
  std::uint32_t free_from = 0;
  for (; first != none; from.get(first)) {
    auto count = from.get<std::uint32_t>();
    free_range(free_from, first - free_from);
    for (std::uint32_t i = 0; i < count; ++i) state[first + i] |= taken;
    bytes_taken_ += std::uint64_t{count} << granule_shift;
    free_from = first + count;
  }
  free_range(free_from, (1u << top_order_) - free_from);
}

void arena_extents::open(std::uint64_t address, std::uint64_t bytes) {
  if (granules_ == nullptr) [[unlikely]]
    attach();
  std::uint64_t first_chunk = (address - addresses.arenas) >> chunk_shift;
  std::uint64_t last_chunk = (address + bytes - 1 - addresses.arenas) >> chunk_shift;
  for (std::uint64_t c = first_chunk; c <= last_chunk; ++c) {
    if (chunks_[c] != 0) continue;
    if (mprotect(at(addresses.arenas + (c << chunk_shift)), chunk_bytes, PROT_READ | PROT_WRITE) !=
        0) {
      throw std::bad_alloc();
    }
    chunks_[c] = 1;
  }
  std::uint32_t count = granule_count(bytes);
  std::uint8_t* state = granules_ + granule_of(address);
  std::uint8_t any = 0;
  for (std::uint32_t i = 0; i < count; ++i) any |= state[i];
  if ((any & sealed) != 0 &&
      mprotect(at(address), std::uint64_t{count} << granule_shift, PROT_READ | PROT_WRITE) != 0) {
    throw std::bad_alloc();
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    state[i] = static_cast<std::uint8_t>((state[i] & ~sealed) | live);
  }
}

void arena_extents::retire(std::uint64_t address, std::uint64_t bytes, std::uint64_t touched) {
  std::uint32_t count = granule_count(bytes);
  std::uint32_t first = granule_of(address);
  std::uint8_t* state = granules_ + first;
  for (std::uint32_t i = 0; i < count; ++i) state[i] &= static_cast<std::uint8_t>(~live);
  if (checked()) {
    // Inaccessible, so that code on this rank that still has a pointer into the extent is caught
    // when it uses it.
    madvise(at(address), touched, MADV_DONTNEED);
    if (mprotect(at(address), std::uint64_t{count} << granule_shift, PROT_NONE) != 0) {
      return;  // the limit on mappings is reached: this extent goes unchecked
    }
    for (std::uint32_t i = 0; i < count; ++i) state[i] |= sealed;
    return;
  }
  if (touched >= cold_at_once) {
    madvise(at(address), touched, MADV_DONTNEED);
    return;
  }
  // An extent may have been here before, so some of its granules may be in the list already.
  std::uint32_t end = granule_count(touched);
  for (std::uint32_t i = 0; i < end;) {
    std::uint32_t j = i;
    while (j < end && (state[j] & warm) == 0) state[j++] |= warm;
    if (j > i) {
      std::uint64_t from = std::uint64_t{i} << granule_shift;
      keep_warm(first + i, j - i, std::min(std::uint64_t{j} << granule_shift, touched) - from);
    }
    i = std::max(j, i + 1);
  }
}

void arena_extents::keep_warm(std::uint32_t first, std::uint32_t count, std::uint64_t bytes) {
  warm_[warm_count_++] = {first, count, bytes};
  warm_bytes_ += bytes;
  while (warm_count_ == warm_ranges_max || warm_bytes_ > warm_bytes_max) cool();
}

/// Gives back the memory of the older half of the list, with one call for adjoining ranges. Leaves
/// out extents in which threads live again.
void arena_extents::cool() {
  std::uint32_t half = (warm_count_ + 1) / 2;
  std::sort(warm_, warm_ + half,
            [](const granule_range& a, const granule_range& b) { return a.first < b.first; });
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  auto drop = [&] {
    if (to > from) {
      madvise(at(address_of(from)), std::uint64_t{to - from} << granule_shift, MADV_DONTNEED);
    }
  };
  for (std::uint32_t i = 0; i < half; ++i) {
    warm_bytes_ -= warm_[i].bytes;
    for (std::uint32_t g = warm_[i].first; g < warm_[i].first + warm_[i].count; ++g) {
      granules_[g] &= static_cast<std::uint8_t>(~warm);
      if ((granules_[g] & live) != 0) continue;
      if (g != to) {
        drop();
        from = g;
      }
      to = g + 1;
    }
  }
  drop();
  std::copy(warm_ + half, warm_ + warm_count_, warm_);
  warm_count_ -= half;
}

}  // namespace sojourn::detail
