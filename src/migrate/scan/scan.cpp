// SPDX-License-Identifier: Apache-2.0
#include "migrate/scan/scan.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/check.hpp"
#include "fiber/call_below.hpp"
#include "fiber/piece.hpp"
#include "fiber/stack_copy.hpp"
#include "memory/address_map.hpp"
#include "memory/stack_slots.hpp"
#include "migrate/scan/stale_report.hpp"
#include "sojourn/detail/running.hpp"

extern "C" char end;

// Frames are read word by word, including the address sanitizer's red zones in them.
#define READS_FRAMES __attribute__((no_sanitize("address")))

namespace sojourn::detail {

namespace {

bool enabled = true;
bool scan_is_on = true;
#if defined(__aarch64__)
constexpr std::uint64_t user_end = std::uint64_t{1} << 48;
#else
constexpr std::uint64_t user_end = std::uint64_t{1} << 47;
#endif
// The libraries, mapped memory and all heaps of the C library except the first lie at the top of
// the user's addresses. The first heap lies behind the program.
std::uint64_t top_low;
std::uint64_t top_bytes;
std::uint64_t first_heap_low;
std::uint64_t first_heap_high;
// New mappings are made below the lowest one that exists at the start. They are assumed to need no
// more room than this.
constexpr std::uint64_t room_for_mappings = std::uint64_t{64} << 30;

bool is_stale(std::uint64_t word) {
  if (word % 8 != 0) return false;
  return word - top_low < top_bytes || word - first_heap_low < first_heap_high - first_heap_low;
}

/// From the lowest mapping that begins in [from, to) to the end of the highest.
mapping mappings(std::uint64_t from, std::uint64_t to) {
  mapping all{to, from};
  for (const mapping& m : mappings_now()) {
    if (m.low < from || m.low >= to) continue;
    all.low = std::min(all.low, m.low);
    all.high = std::max(all.high, m.high);
  }
  return all;
}

/// Where the first heap begins. The kernel leaves a random gap of up to a GiB behind the program,
/// and numbers of many programs fall into that gap, so the heap must not be taken to begin right
/// there.
std::uint64_t begin_of_first_heap(std::uint64_t heap_end) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t behind_program =
      (reinterpret_cast<std::uint64_t>(&end) + page - 1) & ~(page - 1);
  std::uint64_t low = heap_end;
  for (const mapping& m : mappings_now()) {
    // A mapping may begin in the program and extend into the heap.
    if (m.high <= behind_program || m.low >= heap_end) continue;
    low = std::min(low, std::max(m.low, behind_program));
  }
  return low;
}

void fill_lanes();

}  // namespace

std::vector<mapping> mappings_now() {
  std::vector<mapping> all;
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr)
    throw error(
        "/proc/self/maps cannot be read, and a rank must know what is mapped where: mount /proc");
  char row[512];
  while (std::fgets(row, sizeof row, maps) != nullptr) {
    char* dash = row;
    const std::uint64_t low = std::strtoull(row, &dash, 16);
    if (*dash == '-') all.push_back({low, std::strtoull(dash + 1, nullptr, 16)});
  }
  std::fclose(maps);
  return all;
}

bool scan_is_enabled() { return scan_is_on; }

void attach_scan() {
  const char* text = std::getenv("SOJOURN_SCAN");
  if (text != nullptr && std::strcmp(text, "on") != 0 && std::strcmp(text, "off") != 0) {
    throw error(format("SOJOURN_SCAN=%s is neither on nor off", text));
  }
  // Off with the address sanitizer, which keeps addresses of its own in every frame.
  enabled = text == nullptr ? !SOJOURN_ASAN : std::strcmp(text, "on") == 0;
  scan_is_on = enabled;
  // Checked mode does its own scan, which ends the job (checked_scan.hpp).
  if (checked()) enabled = false;
  std::uint64_t region_end = addresses.base + addresses.bytes;
  first_heap_high = reinterpret_cast<std::uint64_t>(sbrk(0));
  first_heap_low = begin_of_first_heap(first_heap_high);
  // The kernel maps downwards from the first stack, in which the bytes of AT_RANDOM lie. Under
  // qemu-user and valgrind that stack and the mappings lie below the region, and new mappings are
  // made upwards.
  if (getauxval(AT_RANDOM) < addresses.base) {
    mapping below = mappings(first_heap_high, addresses.base);
    top_low = below.low;
    top_bytes =
        std::min(addresses.base - top_low, std::max(room_for_mappings, below.high - below.low));
  } else {
    std::uint64_t lowest = mappings(region_end, user_end).low;
    top_low = lowest - std::min(lowest - region_end, room_for_mappings);
    top_bytes = user_end - top_low;
  }
  fill_lanes();
}

namespace {

/// The first heap grows and shrinks with what the program allocates.
void look_where_the_heap_ends() {
  const auto now = reinterpret_cast<std::uint64_t>(sbrk(0));
  if (now == first_heap_high) return;
  first_heap_high = now;
  fill_lanes();
}

READS_FRAMES std::size_t find_one_by_one(const std::uint64_t* words, std::size_t from,
                                         std::size_t count) {
  for (std::size_t i = from; i < count; ++i) {
    if (is_stale(words[i])) return i;
  }
  return count;
}

std::size_t find_plain(const std::uint64_t* words, std::size_t count) {
  return find_one_by_one(words, 0, count);
}

#if defined(__x86_64__)

/// The vector code may suspect lanes without reason: looks at them again, exactly.
READS_FRAMES std::size_t first_stale_lane(const std::uint64_t* words, unsigned lanes,
                                          std::size_t none) {
  for (; lanes != 0; lanes &= lanes - 1) {
    auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
    if (is_stale(words[lane])) return lane;
  }
  return none;
}

// A word lies in [low, low + bytes) when word - low, less 2^63, is below bytes, less 2^63, signed:
// one addition and one comparison a range.
constexpr std::uint64_t bias = std::uint64_t{1} << 63;

constexpr long long as_lane(std::uint64_t x) { return static_cast<long long>(x); }

/// Constants repeated in every lane, so that a scan begins with loads.
struct range_lanes {
  alignas(32) std::uint64_t heap_add[4], heap_end[4], top_add[4], top_end[4];
};
range_lanes lanes_of_ranges;

void fill_lanes() {
  for (int i = 0; i < 4; ++i) {
    lanes_of_ranges.heap_add[i] = bias - first_heap_low;
    lanes_of_ranges.heap_end[i] = bias + first_heap_high - first_heap_low;
    lanes_of_ranges.top_add[i] = bias - top_low;
    lanes_of_ranges.top_end[i] = bias + top_bytes;
  }
}

#define AVX2_READS_FRAMES __attribute__((target("avx2"), always_inline)) inline READS_FRAMES

AVX2_READS_FRAMES __m256i lanes(const std::uint64_t (&words)[4]) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(words));
}

/// Lanes that lie in one of the ranges, all bits set.
AVX2_READS_FRAMES __m256i suspects(const std::uint64_t* words) {
  __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
  return _mm256_or_si256(_mm256_cmpgt_epi64(lanes(lanes_of_ranges.heap_end),
                                            _mm256_add_epi64(w, lanes(lanes_of_ranges.heap_add))),
                         _mm256_cmpgt_epi64(lanes(lanes_of_ranges.top_end),
                                            _mm256_add_epi64(w, lanes(lanes_of_ranges.top_add))));
}

__attribute__((target("avx2"))) READS_FRAMES std::size_t find_avx2(const std::uint64_t* words,
                                                                   std::size_t count) {
  if (count < 8) return find_one_by_one(words, 0, count);
  for (std::size_t i = 0;;) {
    __m256i low = suspects(words + i);
    __m256i high = suspects(words + i + 4);
    __m256i either = _mm256_or_si256(low, high);
    if (_mm256_testz_si256(either, either) == 0) [[unlikely]] {
      auto found = static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(low)) |
                                         _mm256_movemask_pd(_mm256_castsi256_pd(high)) << 4);
      std::size_t lane = first_stale_lane(words + i, found, 8);
      if (lane < 8) return i + lane;
    }
    if (i + 8 == count) return count;
    // The last eight words may overlap the eight before them, which held no suspect.
    i = i + 16 <= count ? i + 8 : count - 8;
  }
}

__attribute__((target("avx512f"))) READS_FRAMES std::size_t find_avx512(const std::uint64_t* words,
                                                                        std::size_t count) {
  const __m512i heap_low = _mm512_set1_epi64(as_lane(first_heap_low));
  const __m512i heap_bytes = _mm512_set1_epi64(as_lane(first_heap_high - first_heap_low));
  const __m512i top_from = _mm512_set1_epi64(as_lane(top_low));
  const __m512i top_size = _mm512_set1_epi64(as_lane(top_bytes));
  for (std::size_t i = 0; i < count; i += 8) {
    // Lanes beyond the last word are zero, which is never suspect.
    auto here = static_cast<__mmask8>(count - i >= 8 ? 0xff : (1u << (count - i)) - 1);
    __m512i w = _mm512_maskz_loadu_epi64(here, words + i);
    unsigned lanes = _mm512_cmplt_epu64_mask(_mm512_sub_epi64(w, heap_low), heap_bytes) |
                     _mm512_cmplt_epu64_mask(_mm512_sub_epi64(w, top_from), top_size);
    if (lanes == 0) [[likely]]
      continue;
    std::size_t lane = first_stale_lane(words + i, lanes, 8);
    if (lane < 8) return i + lane;
  }
  return count;
}

constexpr std::array finders{stale_pointer_finder{"AVX-512", find_avx512},
                             stale_pointer_finder{"AVX2", find_avx2},
                             stale_pointer_finder{"plain", find_plain}};

/// Processors with AVX-512 have AVX2, too.
std::size_t first_finder() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return 0;
  return __builtin_cpu_supports("avx2") ? 1 : 2;
}

#else
void fill_lanes() {}

constexpr std::array finders{stale_pointer_finder{"plain", find_plain}};
std::size_t first_finder() { return 0; }
#endif

const auto find = stale_pointer_finders().front().find;

}  // namespace

std::span<const stale_pointer_finder> stale_pointer_finders() {
  return std::span(finders).subspan(first_finder());
}

std::size_t find_stale_pointer(const std::uint64_t* words, std::size_t count) {
  look_where_the_heap_ends();
  return find(words, count);
}

private_memory private_memory_now() {
  look_where_the_heap_ends();
  return {first_heap_low, first_heap_high, top_low, top_low + top_bytes, user_end};
}

namespace {

/// Reports a word of frames that end at `hi`. If others move the fiber, its frames lie on another
/// stack than this function runs on.
void report(std::uint64_t address, std::uint64_t hi, std::uint64_t word, bool older) {
  const std::uint32_t slot = slots.index_of(address);
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  if (addresses.in_stacks(here) && slots.index_of(here) == slot) {
    return report_stale_pointer(address, hi, word, older);
  }
  const piece* p = slots[slot].in_place;
  while (p != nullptr && p->hi != hi) p = p->next_in_slot;
  if (p == nullptr || !p->is_in_place()) return;
  struct suspect {
    std::uint64_t address, hi, word;
    bool older;
  } found{address, hi, word, older};
  call_below(
      p,
      [](void* argument) {
        const auto& s = *static_cast<suspect*>(argument);
        report_stale_pointer(s.address, s.hi, s.word, s.older);
      },
      &found);
}

}  // namespace

READS_FRAMES void scan_frames(std::uint64_t sp, std::uint64_t hi, std::uint64_t slot_high,
                              const mark* base) {
  if (!enabled) return;
  if (base != nullptr) {
    // Looks at the arguments, because it is through these that frames refer to their callers'
    // frames.
    const auto* word = reinterpret_cast<const std::uint64_t*>(base + 1);
    for (std::size_t i = 0; i < base->argument_words(); ++i, ++word) {
      if (*word - hi < slot_high - hi && *word % 8 == 0) [[unlikely]] {
        report(hi - 1, hi, *word, true);
      }
    }
  }
  const auto* words = reinterpret_cast<const std::uint64_t*>(sp);
  std::size_t count = (hi - sp) / 8;
  for (std::size_t i = find_stale_pointer(words, count); i < count;) {
    report(sp + i * 8, hi, words[i], false);
    ++i;
    i += find_stale_pointer(words + i, count - i);
  }
}

}  // namespace sojourn::detail
