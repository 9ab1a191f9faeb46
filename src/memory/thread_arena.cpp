// SPDX-License-Identifier: Apache-2.0
#include "memory/thread_arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <type_traits>

#include "base/check.hpp"
#include "base/saved_file.hpp"

namespace sojourn::detail {

namespace {

constexpr std::size_t page = thread_arena::page_bytes;
constexpr std::size_t quantum = 16;  // what every block is aligned to
// Freed runs at least this long give their memory back to the system.
constexpr std::uint64_t cold_run_bytes = 1u << 20;
// Gaps up to this long between used ranges are copied, too: another range would cost more.
constexpr std::uint64_t gap_bytes_max = 64;
// A slab is carved into blocks in steps of about this size. What is not carved does not travel.
constexpr std::size_t carve_bytes = 512;

// The sizes of small blocks. Those above 512 fit a page 7, 6, 5, 4, 3 and 2 times.
constexpr std::array<std::uint16_t, 22> class_bytes = {16,  32,  48,  64,   80,   96,  112, 128,
                                                       160, 192, 224, 256,  320,  384, 448, 512,
                                                       576, 672, 800, 1008, 1344, 2032};
constexpr std::size_t slab_header_bytes = 32;

/// Where a slab's first block begins: blocks whose size is a power of two are aligned to that size.
constexpr std::size_t first_block(unsigned size_class) {
  std::size_t bytes = class_bytes[size_class];
  return std::has_single_bit(bytes) ? std::max(bytes, slab_header_bytes) : slab_header_bytes;
}

constexpr auto class_capacity = [] {
  std::array<std::uint8_t, class_bytes.size()> capacity{};
  for (unsigned c = 0; c < capacity.size(); ++c) {
    capacity[c] = static_cast<std::uint8_t>((page - first_block(c)) / class_bytes[c]);
  }
  return capacity;
}();

/// The smallest class for so many quanta.
constexpr auto class_of_quanta = [] {
  std::array<std::uint8_t, thread_arena::small_bytes_max / quantum + 1> classes{};
  std::uint8_t c = 0;
  for (std::size_t q = 0; q < classes.size(); ++q) {
    while (class_bytes[c] < q * quantum) ++c;
    classes[q] = c;
  }
  return classes;
}();
static_assert(class_bytes.back() == thread_arena::small_bytes_max);

unsigned class_of(std::size_t bytes) { return class_of_quanta[(bytes + quantum - 1) / quantum]; }

/// The bytes that a block with more than the usual alignment takes: a power of two, or, above 512,
/// pages.
std::size_t aligned_bytes(std::size_t bytes, std::size_t alignment) {
  std::size_t least = std::max(bytes, alignment);
  if (least > 512) return std::max<std::size_t>(bytes, thread_arena::small_bytes_max + 1);
  return std::bit_ceil(least);
}

// Maps of pages: a bit for each page, from the lowest bit of the first word.

constexpr std::uint64_t bits_of_word = 64;

/// The first page from `from` on whose bit is `Set`, or `end`.
template <bool Set>
std::uint64_t next_bit(const std::uint64_t* map, std::uint64_t from, std::uint64_t end) {
  while (from < end) {
    std::uint64_t word = map[from / bits_of_word];
    word = (Set ? word : ~word) >> from % bits_of_word;
    if (word != 0) {
      return std::min(end, from + static_cast<std::uint64_t>(std::countr_zero(word)));
    }
    from = (from / bits_of_word + 1) * bits_of_word;
  }
  return end;
}

template <bool Set>
void fill_bits(std::uint64_t* map, std::uint64_t from, std::uint64_t count) {
  while (count > 0) {
    std::uint64_t n = std::min(count, bits_of_word - from % bits_of_word);
    std::uint64_t mask = (~std::uint64_t{0} >> (bits_of_word - n)) << from % bits_of_word;
    if (Set) {
      map[from / bits_of_word] |= mask;
    } else {
      map[from / bits_of_word] &= ~mask;
    }
    from += n;
    count -= n;
  }
}

bool bit(const std::uint64_t* map, std::uint64_t at) {
  return (map[at / bits_of_word] >> at % bits_of_word & 1) != 0;
}

std::uint64_t pages_of(std::uint64_t bytes) { return (bytes + page - 1) / page; }

}  // namespace

/// The header of an extent, at its first address. Two maps follow: which pages are not free, and
/// which of those are slabs.
struct thread_arena::extent {
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

thread_arena::thread_arena(extent* first)
    : no_slab_{}, first_(first), last_(first), next_extent_bytes_(2 * first_extent_bytes) {
  std::fill_n(with_room_, class_count, &no_slab_);
}

thread_arena* thread_arena::make() {
  static_assert(class_count == class_bytes.size());
  static_assert(sizeof(slab) == slab_header_bytes);
  static_assert(sizeof(extent) % alignof(thread_arena) == 0);
  static_assert(std::is_trivially_copyable_v<arena_descriptor>);
  std::uint64_t address = extents.take(first_extent_bytes);
  if (address == 0) throw std::bad_alloc();
  extent* e = extent::make(address, first_extent_bytes, sizeof(extent) + sizeof(thread_arena));
  return ::new (static_cast<void*>(e + 1)) thread_arena(e);
}

// Small blocks.

void* thread_arena::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes <= small_bytes_max && alignment <= quantum) [[likely]] {
    return allocate_small(class_of(bytes));
  }
  return allocate_other(bytes, alignment);
}

[[gnu::always_inline]] inline void* thread_arena::allocate_small(unsigned size_class) {
  slab* s = with_room_[size_class];
  if (free_block* b = s->free; b != nullptr) [[likely]] {
    s->free = b->next;
    ++s->used;
    return b;
  }
  return refill(size_class);
}

/// Called when the first slab of the class has no free block in its list.
[[gnu::noinline]] void* thread_arena::refill(unsigned size_class) {
  slab* s = with_room_[size_class];
  while (s->free == nullptr) {
    std::size_t capacity = s == &no_slab_ ? 0 : class_capacity[size_class];
    if (s->carved < capacity) {
      std::size_t bytes = class_bytes[size_class];
      std::size_t count =
          std::min(std::max<std::size_t>(carve_bytes / bytes, 1), capacity - s->carved);
      char* block = reinterpret_cast<char*>(s) + first_block(size_class) + s->carved * bytes;
      s->carved = static_cast<std::uint8_t>(s->carved + count);
      s->free = reinterpret_cast<free_block*>(block);
      for (; count > 1; --count, block += bytes) {
        ::new (static_cast<void*>(block)) free_block{reinterpret_cast<free_block*>(block + bytes)};
      }
      ::new (static_cast<void*>(block)) free_block{nullptr};
    } else {
      if (s != &no_slab_) unlink(s);
      if (with_room_[size_class] == &no_slab_) add_slab(size_class);
      s = with_room_[size_class];
    }
  }
  return allocate_small(size_class);
}

void thread_arena::add_slab(unsigned size_class) {
  char* at = allocate_pages(1, true);
  extent* e = extent_of(at);
  auto index = static_cast<std::uint32_t>((at - e->page_at(0)) / static_cast<std::ptrdiff_t>(page));
  auto* s = ::new (static_cast<void*>(at)) slab;
  *s = {nullptr, nullptr, nullptr, index, static_cast<std::uint8_t>(size_class), 0, 0, true};
  with_room_[size_class] = s;
}

void thread_arena::do_deallocate(void* p, std::size_t bytes, std::size_t alignment) {
  if (bytes > small_bytes_max || alignment > quantum) [[unlikely]] {
    return deallocate_other(p, bytes, alignment);
  }
  auto* s = reinterpret_cast<slab*>(reinterpret_cast<std::uint64_t>(p) / page * page);
  free_block* others = s->free;
  s->free = ::new (p) free_block{others};
  if (--s->used == 0 || others == nullptr) [[unlikely]]
    freed_in(s);
}

/// Called when the slab has got its first free block, or has no used block any more.
[[gnu::noinline]] void thread_arena::freed_in(slab* s) {
  slab*& head = with_room_[s->size_class];
  if (!s->has_room) {
    s->has_room = true;
    if (head == &no_slab_) {
      s->next = nullptr;
      head = s;
    } else {
      // Behind the first slab, from which most blocks are allocated.
      s->previous = head;
      s->next = head->next;
      if (s->next != nullptr) s->next->previous = s;
      head->next = s;
    }
  }
  // The last slab of a class with room stays even when it is empty: programs free and allocate in
  // turns.
  if (s->used == 0 && (head != s || s->next != nullptr)) {
    unlink(s);
    free_slab(s);
  }
}

void thread_arena::unlink(slab* s) {
  slab*& head = with_room_[s->size_class];
  if (head == s) {
    head = s->next != nullptr ? s->next : &no_slab_;
  } else {
    s->previous->next = s->next;
    if (s->next != nullptr) s->next->previous = s->previous;
  }
  s->has_room = false;
}

void thread_arena::free_slab(slab* s) {
  auto* e = reinterpret_cast<extent*>(reinterpret_cast<char*>(s) - std::uint64_t{s->page} * page);
  fill_bits<false>(e->slabs(), s->page, 1);
  free_pages(e, s->page, 1);
}

/// A slab that is empty and was kept is the only one of its class with room.
void thread_arena::free_empty_slabs() {
  for (slab* s : with_room_) {
    if (s == &no_slab_ || s->used != 0) continue;
    unlink(s);
    free_slab(s);
  }
}

// Runs of pages.

void* thread_arena::allocate_other(std::size_t bytes, std::size_t alignment) {
  if (alignment > alignment_max) throw std::bad_alloc();
  if (alignment > quantum) {
    bytes = aligned_bytes(bytes, alignment);
    if (bytes <= small_bytes_max) return allocate_small(class_of(bytes));
  }
  if (bytes > std::uint64_t{1} << addresses.arenas_shift) throw std::bad_alloc();
  return allocate_pages(pages_of(bytes), false);
}

void thread_arena::deallocate_other(void* p, std::size_t bytes, std::size_t alignment) {
  if (alignment > quantum) {
    bytes = aligned_bytes(bytes, alignment);
    if (bytes <= small_bytes_max) return do_deallocate(p, bytes, quantum);
  }
  extent* e = extent_of(p);
  std::uint64_t first = (reinterpret_cast<std::uint64_t>(p) - e->address()) / page;
  std::uint64_t count = pages_of(bytes);
  SOJOURN_CHECK(bit(e->used(), first) && !bit(e->slabs(), first) && first + count <= e->pages,
                "%p, of %zu bytes, is freed twice, or with a wrong size", p, bytes);
  if (bytes >= cold_run_bytes) madvise(p, count * page, MADV_DONTNEED);
  free_pages(e, first, count);
}

char* thread_arena::allocate_pages(std::uint64_t count, bool for_slab) {
  extent* e = first_;
  std::uint64_t first = 0;
  while (e != nullptr && (first = e->find(count)) == 0) e = e->next;
  if (e == nullptr) {
    e = grow(count);
    first = e->find(count);
  }
  fill_bits<true>(e->used(), first, count);
  if (for_slab) fill_bits<true>(e->slabs(), first, 1);
  e->pages_free -= static_cast<std::uint32_t>(count);
  auto end = static_cast<std::uint32_t>(first + count);
  if (e->lowest_free == first) e->lowest_free = end;
  e->touched = std::max(e->touched, end);
  return e->page_at(first);
}

void thread_arena::free_pages(extent* e, std::uint64_t first, std::uint64_t count) {
  fill_bits<false>(e->used(), first, count);
  e->pages_free += static_cast<std::uint32_t>(count);
  e->lowest_free = std::min(e->lowest_free, static_cast<std::uint32_t>(first));
  if (e->bytes() > grown_extent_bytes && e->pages_free == e->pages - e->record_pages() &&
      extents.is_home(e->address())) [[unlikely]] {
    shrink(e);
  }
}

/// Gives back an extent that was made for one large block, so that a vector which grows does not
/// use up the partition.
void thread_arena::shrink(extent* e) {
  extent* before = first_;
  while (before->next != e) before = before->next;
  before->next = e->next;
  if (last_ == e) last_ = before;
  std::uint64_t address = e->address();
  std::uint64_t bytes = e->bytes();
  extents.retire(address, bytes, std::uint64_t{e->touched} * page);
  extents.give_back(address, bytes);
}

/// Adds an extent with room for a run of this many pages. It is of this rank's partition, whatever
/// ranks the other extents are from. When the partition has no long stretch left, the shortest that
/// suffices will do.
thread_arena::extent* thread_arena::grow(std::uint64_t pages) {
  // The records need pages, and these need records: compute again with them included.
  std::uint64_t records = pages_of(extent::record_bytes(pages + 1, sizeof(extent)));
  records =
      pages_of(extent::record_bytes(pages + records + first_extent_bytes / page, sizeof(extent)));
  std::uint64_t least = (pages + records) * page;
  least = (least + first_extent_bytes - 1) / first_extent_bytes * first_extent_bytes;
  std::uint64_t bytes = std::max(least, next_extent_bytes_);
  std::uint64_t address;
  while ((address = extents.take(bytes)) == 0) {
    if (bytes == least) throw std::bad_alloc();
    bytes = std::max(least, bytes / 2);
  }
  extent* e = extent::make(address, bytes, sizeof(extent));
  last_->next = e;
  last_ = e;
  next_extent_bytes_ = std::min(2 * next_extent_bytes_, grown_extent_bytes);
  return e;
}

thread_arena::extent* thread_arena::extent_of(const void* p) const {
  auto address = reinterpret_cast<std::uint64_t>(p);
  extent* e = first_;
  while (e != nullptr && address - e->address() >= e->bytes()) e = e->next;
  SOJOURN_CHECK(e != nullptr, "%p is not of this thread's heap (%p)", p,
                static_cast<const void*>(this));
  return e;
}

// Travelling.

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

bool thread_arena::is_valid() const {
  std::size_t listed = 0;
  for (unsigned c = 0; c < class_count; ++c) {
    const slab* before = nullptr;
    for (slab* s = with_room_[c]; s != nullptr && s != &no_slab_; before = s, s = s->next) {
      if (s->size_class != c || !s->has_room || (before != nullptr && s->previous != before)) {
        return false;
      }
      ++listed;
    }
  }
  std::size_t with_room = 0;
  for (extent* e = first_; e != nullptr; e = e->next) {
    if (e->next == nullptr && e != last_) return false;
    std::uint64_t free = 0;
    for (std::uint64_t i = 0; i < e->pages; ++i) {
      bool used = bit(e->used(), i);
      free += !used;
      if (!used && (bit(e->slabs(), i) || i < e->lowest_free)) return false;
      if (used && i >= e->touched) return false;
      if (!bit(e->slabs(), i)) continue;
      auto* s = reinterpret_cast<slab*>(e->page_at(i));
      std::size_t blocks = 0;
      for (free_block* b = s->free; b != nullptr; b = b->next) {
        auto offset = reinterpret_cast<std::uint64_t>(b) - reinterpret_cast<std::uint64_t>(s);
        if (offset >= page || (offset - first_block(s->size_class)) % class_bytes[s->size_class]) {
          return false;
        }
        if (++blocks > s->carved) return false;
      }
      if (s->page != i || blocks + s->used != s->carved) return false;
      if (s->has_room != (s->used < class_capacity[s->size_class])) {
        // A full slab stays in the list until the next allocation from it.
        if (!s->has_room || s->used != class_capacity[s->size_class]) return false;
      }
      with_room += s->has_room;
    }
    if (free != e->pages_free) return false;
  }
  return listed == with_room;
}

}  // namespace sojourn::detail
