// SPDX-License-Identifier: Apache-2.0
#include "migrate/scan.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "base/check.hpp"
#include "base/symbols.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/running.hpp"

extern "C" char __executable_start;
extern "C" char etext;
extern "C" char end;

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
std::uint64_t code_of_frame(std::uint64_t sp, std::uint64_t address) {
  auto text_low = reinterpret_cast<std::uint64_t>(&__executable_start);
  auto text_high = reinterpret_cast<std::uint64_t>(&etext);
  for (std::uint64_t a = address; a >= sp + 8; a -= 8) {
    std::uint64_t word;
    std::memcpy(&word, reinterpret_cast<const void*>(a - 8), sizeof word);
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
  enabled = text == nullptr || std::strcmp(text, "on") == 0;
  first_heap_low = reinterpret_cast<std::uint64_t>(&end);
  first_heap_high = reinterpret_cast<std::uint64_t>(sbrk(0));
}

std::size_t find_stale_pointer(const std::uint64_t* words, std::size_t count,
                               const left_behind& frames) {
  std::size_t i = 0;
#if defined(__x86_64__)
  // Four words at a time, by their upper halves alone: a word is suspect when that half is that of
  // the slot, of the top sixteenth, or zero (the first heap; and small numbers, so those are
  // compared below only when their lower half is not small either).
  const __m128i seven = _mm_set1_epi32(7);
  const __m128i slot_half = _mm_set1_epi32(static_cast<int>(frames.older_low >> 32));
  const __m128i zero = _mm_setzero_si128();
  const __m128i heap_low = _mm_set1_epi32(static_cast<int>(first_heap_low >> 8));
  const __m128i heap_high = _mm_set1_epi32(static_cast<int>((first_heap_high >> 8) + 1));
  const __m128i older_low =
      _mm_set1_epi32(static_cast<int>((frames.older_low & 0xffffffffu) >> 4) - 1);
  for (; i + 4 <= count; i += 4) {
    __m128 a = _mm_loadu_ps(reinterpret_cast<const float*>(words + i));
    __m128 b = _mm_loadu_ps(reinterpret_cast<const float*>(words + i + 2));
    __m128i upper = _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
    __m128i lower = _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)));
    __m128i top = _mm_cmpeq_epi32(_mm_srli_epi32(upper, 12), seven);
    __m128i older = _mm_and_si128(_mm_cmpeq_epi32(upper, slot_half),
                                  _mm_cmpgt_epi32(_mm_srli_epi32(lower, 4), older_low));
    __m128i lower_page = _mm_srli_epi32(lower, 8);
    __m128i heap = _mm_and_si128(
        _mm_cmpeq_epi32(upper, zero),
        _mm_andnot_si128(_mm_cmplt_epi32(lower_page, heap_low),
                         _mm_cmplt_epi32(lower_page, heap_high)));
    if (_mm_movemask_epi8(_mm_or_si128(top, _mm_or_si128(older, heap))) == 0) continue;
    for (std::size_t j = i; j < i + 4; ++j) {
      if (is_stale(words[j], frames)) return j;
    }
  }
#endif
  for (; i < count; ++i) {
    if (is_stale(words[i], frames)) return i;
  }
  return count;
}

void scan_frames(std::uint64_t sp, std::uint64_t hi, std::uint64_t slot_high, const void* base) {
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
