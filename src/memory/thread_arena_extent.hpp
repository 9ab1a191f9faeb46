// SPDX-License-Identifier: Apache-2.0
// What a thread's heap is made of: extents with their pages, and the sizes of small blocks.
// thread_arena.cpp carves slabs into blocks, thread_arena_pages.cpp finds runs of pages,
// thread_arena_travel.cpp says what goes along when the thread moves.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "memory/page_map.hpp"

namespace sojourn::detail {

namespace arena {

inline constexpr std::size_t page = 4096;
inline constexpr std::size_t quantum = 16;  // what every block is aligned to

// The sizes of small blocks. Those above 512 fit a page 7, 6, 5, 4, 3 and 2 times.
inline constexpr std::array<std::uint16_t, 22> class_bytes = {
    16,  32,  48,  64,  80,  96,  112, 128, 160,  192,  224,
    256, 320, 384, 448, 512, 576, 672, 800, 1008, 1344, 2032};
inline constexpr std::size_t small_bytes_max = class_bytes.back();
inline constexpr std::size_t slab_header_bytes = 32;

/// Where a slab's first block begins: blocks whose size is a power of two are aligned to that size.
constexpr std::size_t first_block(unsigned size_class) {
  std::size_t bytes = class_bytes[size_class];
  return std::has_single_bit(bytes) ? std::max(bytes, slab_header_bytes) : slab_header_bytes;
}

inline constexpr auto class_capacity = [] {
  std::array<std::uint8_t, class_bytes.size()> capacity{};
  for (unsigned c = 0; c < capacity.size(); ++c) {
    capacity[c] = static_cast<std::uint8_t>((page - first_block(c)) / class_bytes[c]);
  }
  return capacity;
}();

/// The smallest class for so many quanta.
inline constexpr auto class_of_quanta = [] {
  std::array<std::uint8_t, small_bytes_max / quantum + 1> classes{};
  std::uint8_t c = 0;
  for (std::size_t q = 0; q < classes.size(); ++q) {
    while (class_bytes[c] < q * quantum) ++c;
    classes[q] = c;
  }
  return classes;
}();

inline unsigned class_of(std::size_t bytes) {
  return class_of_quanta[(bytes + quantum - 1) / quantum];
}

inline std::uint64_t pages_of(std::uint64_t bytes) { return (bytes + page - 1) / page; }

/// The header of an extent, at its first address. Two maps follow: which pages are not free, and
/// which of those are slabs.
struct extent {
  extent* next;
  std::uint32_t pages;
  std::uint32_t pages_free;
  std::uint32_t lowest_free;  // no page below it is free
  std::uint32_t touched;      // no page from it on was ever used
  std::uint32_t maps;         // offset of the maps
  std::uint32_t words_of_map;

  std::uint64_t* used() {
    return reinterpret_cast<std::uint64_t*>(reinterpret_cast<char*>(this) + maps);
  }
  std::uint64_t* slabs() { return used() + words_of_map; }
  const std::uint64_t* used() const { return const_cast<extent*>(this)->used(); }
  const std::uint64_t* slabs() const { return const_cast<extent*>(this)->slabs(); }

  char* page_at(std::uint64_t index) { return reinterpret_cast<char*>(this) + index * page; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(this); }
  std::uint64_t bytes() const { return std::uint64_t{pages} * page; }
  std::uint64_t record_bytes() const {
    return maps + 2 * std::uint64_t{words_of_map} * sizeof(std::uint64_t);
  }
  std::uint64_t record_pages() const { return pages_of(record_bytes()); }

  /// The bytes that an extent's records take when `own_bytes` stand before its maps.
  static std::uint64_t record_bytes(std::uint64_t pages, std::uint64_t own_bytes) {
    return own_bytes + 2 * ((pages + bits_of_word - 1) / bits_of_word) * sizeof(std::uint64_t);
  }

  static extent* make(std::uint64_t address, std::uint64_t bytes, std::size_t own_bytes) {
    auto* e = ::new (reinterpret_cast<void*>(address)) extent;
    e->next = nullptr;
    e->pages = static_cast<std::uint32_t>(bytes / page);
    e->maps = static_cast<std::uint32_t>(own_bytes);
    e->words_of_map = static_cast<std::uint32_t>((e->pages + bits_of_word - 1) / bits_of_word);
    std::fill_n(e->used(), 2 * std::size_t{e->words_of_map}, std::uint64_t{0});
    auto records = static_cast<std::uint32_t>(e->record_pages());
    fill_bits<true>(e->used(), 0, records);
    e->pages_free = e->pages - records;
    e->lowest_free = records;
    e->touched = records;
    return e;
  }

  /// First fit. Returns 0 when there is no such run: page 0 holds the header.
  std::uint64_t find(std::uint64_t count) const {
    if (count > pages_free) return 0;
    std::uint64_t i = lowest_free;
    while ((i = next_bit<false>(used(), i, pages)) + count <= pages) {
      std::uint64_t end = next_bit<true>(used(), i, i + count);
      if (end == i + count) return i;
      i = end + 1;
    }
    return 0;
  }
};

}  // namespace arena

}  // namespace sojourn::detail
