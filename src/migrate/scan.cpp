// SPDX-License-Identifier: Apache-2.0
#include "migrate/scan.hpp"

#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/check.hpp"
#include "base/symbols.hpp"
#include "fiber/stack_copy.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/running.hpp"

extern "C" char __executable_start;
extern "C" char etext;
extern "C" char end;

// Words of frames are read as they lie there, red zones of the address sanitizer included.
#define READS_FRAMES __attribute__((no_sanitize("address")))

namespace sojourn::detail {

namespace {

bool enabled = true;
// Libraries, mapped memory and the other heaps of the C library lie in the top sixteenth of the
// user's addresses, [0x7000'0000'0000, 0x8000'0000'0000); the first heap behind the program.
std::uint64_t first_heap_low;
std::uint64_t first_heap_high;

bool is_stale(std::uint64_t word, const left_behind& frames) {
  if (word - frames.older_low < frames.older_high - frames.older_low) return word != frames.base;
  return word >> 44 == 7 ||
         (word - first_heap_low < first_heap_high - first_heap_low && word % 8 == 0);
}

/// The nearest return address below `address`: it points into the function whose frame holds the
/// word there, behind the call that function had made. 0 when there is none.
READS_FRAMES std::uint64_t code_of_frame(std::uint64_t sp, std::uint64_t address) {
  auto text_low = reinterpret_cast<std::uint64_t>(&__executable_start);
  auto text_high = reinterpret_cast<std::uint64_t>(&etext);
  for (std::uint64_t a = address; a >= sp + 8; a -= 8) {
    std::uint64_t word = *reinterpret_cast<const std::uint64_t*>(a - 8);
    if (word < text_low + 8 || word >= text_high) continue;
#if defined(__x86_64__)
    const auto* code = reinterpret_cast<const unsigned char*>(word);
    bool after_call = code[-5] == 0xe8 || (code[-2] == 0xff && (code[-1] & 0x38) == 0x10) ||
                      (code[-3] == 0xff && (code[-2] & 0x38) == 0x10) ||
                      (code[-6] == 0xff && (code[-5] & 0x38) == 0x10);
    if (!after_call) continue;
#endif
    return word - 1;
  }
  return 0;
}

void warn(std::uint64_t sp, std::uint64_t address, std::uint64_t word, const left_behind& frames) {
  // Dead words stay where they are from one migration to the next: seen lately, known already.
  static std::uint64_t seen[256];
  std::uint64_t key = address ^ (word * 0x9e3779b97f4a7c15u);
  std::uint64_t& slot = seen[key >> 8 & 255];
  ++counts.scan_warnings;
  if (slot == key) return;
  slot = key;
  static std::unordered_set<std::uint64_t> warned;
  bool older = word - frames.older_low < frames.older_high - frames.older_low;
  std::uint64_t code = code_of_frame(sp, address);
  if (!warned.insert(code * 2 + older).second) return;
  std::string function = code == 0 ? "an activation" : symbolise(code);
  // What lies in frames of our own is dead: they hold values and addresses of the runtime only.
  if (function.find("sojourn::detail::") != std::string::npos) return;
  // Once a function, not once a call in it.
  static std::set<std::pair<std::string, bool>> named;
  if (!named.emplace(function, older).second) return;
  std::fprintf(stderr,
               "sojourn: rank %d: warning: a frame of `%s` migrates with a word (0x%llx) that "
               "looks like a pointer into %s; on another rank it points nowhere. Pass the data by "
               "value, or keep it in the global heap (see docs/migration.md; SOJOURN_SCAN=off "
               "silences this)\n",
               job.me, function.c_str(), static_cast<unsigned long long>(word),
               older ? "the frames of its callers, which stay" : "this rank's private memory");
}

}  // namespace

void attach_scan() {
  const char* text = std::getenv("SOJOURN_SCAN");
  if (text != nullptr && std::strcmp(text, "on") != 0 && std::strcmp(text, "off") != 0) {
    throw error(format("SOJOURN_SCAN=%s is neither on nor off", text));
  }
  // The address sanitizer keeps addresses of its own in every frame.
  enabled = text == nullptr ? !SOJOURN_ASAN : std::strcmp(text, "on") == 0;
  first_heap_low = reinterpret_cast<std::uint64_t>(&end);
  first_heap_high = reinterpret_cast<std::uint64_t>(sbrk(0));
}

namespace {

using finder = std::size_t (*)(const std::uint64_t* words, std::size_t count,
                               const left_behind& frames);

READS_FRAMES std::size_t find_one_by_one(const std::uint64_t* words, std::size_t from, std::size_t count,
                            const left_behind& frames) {
  for (std::size_t i = from; i < count; ++i) {
    if (is_stale(words[i], frames)) return i;
  }
  return count;
}

std::size_t find_plain(const std::uint64_t* words, std::size_t count, const left_behind& frames) {
  return find_one_by_one(words, 0, count, frames);
}

#if defined(__x86_64__)

/// Looks again, exactly, at the lanes of a vector that were suspect.
READS_FRAMES std::size_t first_stale_lane(const std::uint64_t* words, unsigned lanes, const left_behind& frames,
                             std::size_t none) {
  for (; lanes != 0; lanes &= lanes - 1) {
    auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
    if (is_stale(words[lane], frames)) return lane;
  }
  return none;
}

// A word lies in [low, low + bytes) when word - low, less 2^63, is below bytes, less 2^63, signed:
// one addition and one comparison a range.
constexpr std::uint64_t bias = std::uint64_t{1} << 63;
constexpr std::uint64_t top_low = std::uint64_t{7} << 44;
constexpr std::uint64_t top_bytes = std::uint64_t{1} << 44;

constexpr long long as_lane(std::uint64_t x) { return static_cast<long long>(x); }

__attribute__((target("avx2"))) READS_FRAMES std::size_t find_avx2(const std::uint64_t* words, std::size_t count,
                                                      const left_behind& frames) {
  const __m256i older_add = _mm256_set1_epi64x(as_lane(bias - frames.older_low));
  const __m256i older_end = _mm256_set1_epi64x(as_lane(bias + frames.older_high - frames.older_low));
  const __m256i heap_add = _mm256_set1_epi64x(as_lane(bias - first_heap_low));
  const __m256i heap_end = _mm256_set1_epi64x(as_lane(bias + first_heap_high - first_heap_low));
  const __m256i top_add = _mm256_set1_epi64x(as_lane(bias - top_low));
  const __m256i top_end = _mm256_set1_epi64x(as_lane(bias + top_bytes));
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + i));
    __m256i hit = _mm256_or_si256(
        _mm256_cmpgt_epi64(older_end, _mm256_add_epi64(w, older_add)),
        _mm256_or_si256(_mm256_cmpgt_epi64(heap_end, _mm256_add_epi64(w, heap_add)),
                        _mm256_cmpgt_epi64(top_end, _mm256_add_epi64(w, top_add))));
    auto lanes = static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(hit)));
    if (lanes == 0) [[likely]] continue;
    std::size_t lane = first_stale_lane(words + i, lanes, frames, 4);
    if (lane < 4) return i + lane;
  }
  return find_one_by_one(words, i, count, frames);
}

__attribute__((target("avx512f"))) READS_FRAMES std::size_t find_avx512(const std::uint64_t* words,
                                                           std::size_t count,
                                                           const left_behind& frames) {
  const __m512i older_low = _mm512_set1_epi64(as_lane(frames.older_low));
  const __m512i older_bytes = _mm512_set1_epi64(as_lane(frames.older_high - frames.older_low));
  const __m512i heap_low = _mm512_set1_epi64(as_lane(first_heap_low));
  const __m512i heap_bytes = _mm512_set1_epi64(as_lane(first_heap_high - first_heap_low));
  const __m512i top_from = _mm512_set1_epi64(as_lane(top_low));
  const __m512i top_size = _mm512_set1_epi64(as_lane(top_bytes));
  for (std::size_t i = 0; i < count; i += 8) {
    // Lanes beyond the last word are zero, which is never suspect.
    auto here = static_cast<__mmask8>(count - i >= 8 ? 0xff : (1u << (count - i)) - 1);
    __m512i w = _mm512_maskz_loadu_epi64(here, words + i);
    unsigned lanes = _mm512_cmplt_epu64_mask(_mm512_sub_epi64(w, older_low), older_bytes) |
                     _mm512_cmplt_epu64_mask(_mm512_sub_epi64(w, heap_low), heap_bytes) |
                     _mm512_cmplt_epu64_mask(_mm512_sub_epi64(w, top_from), top_size);
    if (lanes == 0) [[likely]] continue;
    std::size_t lane = first_stale_lane(words + i, lanes, frames, 8);
    if (lane < 8) return i + lane;
  }
  return count;
}

finder choose_finder() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return find_avx512;
  if (__builtin_cpu_supports("avx2")) return find_avx2;
  return find_plain;
}

#else
finder choose_finder() { return find_plain; }
#endif

const finder find = choose_finder();

}  // namespace

std::size_t find_stale_pointer(const std::uint64_t* words, std::size_t count,
                               const left_behind& frames) {
  return find(words, count, frames);
}

READS_FRAMES void scan_frames(std::uint64_t sp, std::uint64_t hi, std::uint64_t slot_high,
                              const void* base) {
  if (!enabled) return;
  // The saved frame pointer of the mark's own code points just above it; nobody follows it.
  std::uint64_t low = hi + 48;
  left_behind frames{low, slot_high < low ? low : slot_high, reinterpret_cast<std::uint64_t>(base)};
  const auto* words = reinterpret_cast<const std::uint64_t*>(sp);
  std::size_t count = (hi - sp) / 8;
  for (std::size_t i = find_stale_pointer(words, count, frames); i < count;) {
    warn(sp, sp + i * 8, words[i], frames);
    ++i;
    i += find_stale_pointer(words + i, count - i, frames);
  }
}

}  // namespace sojourn::detail
