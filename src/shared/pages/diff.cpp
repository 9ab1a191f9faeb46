// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/diff.hpp"

#include <array>
#include <bit>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sojourn::detail::pages {

namespace {

// A word has a bit for each byte of a line, and for each line of a page.
constexpr std::size_t line_bytes = 64;
constexpr std::size_t lines_in_page = page_bytes / line_bytes;
static_assert(line_bytes == 64 && lines_in_page == 64);
static_assert(std::endian::native == std::endian::little, "bit i of a mask is for byte i");

constexpr std::uint64_t all = ~std::uint64_t{0};

std::uint64_t load(const std::byte* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

void store(std::byte* to, std::uint64_t word) { std::memcpy(to, &word, sizeof word); }

std::size_t ones(std::uint64_t mask) { return static_cast<std::size_t>(std::popcount(mask)); }

std::size_t first_one(std::uint64_t mask) {
  return static_cast<std::size_t>(std::countr_zero(mask));
}

/// Where the parts of a diff begin.
struct parts {
  parts(const std::byte* diff, std::size_t bytes) {
    if (bytes == 0) return;
    lines = load(diff);
    masks = diff + 8;
    values = masks + 8 * ones(lines);
  }
  std::uint64_t lines = 0;
  const std::byte* masks = nullptr;
  const std::byte* values = nullptr;
};

/// What is_diff() does. Inlined, so that each coding counts bits with the instructions that it has.
[[gnu::always_inline]] inline bool has_right_length(const std::byte* diff, std::size_t bytes) {
  if (bytes < 8) return bytes == 0;
  const std::size_t lines = ones(load(diff));
  if (bytes < 8 + 8 * lines) return false;
  std::size_t values = 0;
  for (std::size_t i = 1; i <= lines; ++i) values += ones(load(diff + 8 * i));
  return bytes == 8 + 8 * lines + values;
}

// A coding makes a diff in two passes: the first finds the lines that have changed, and the second
// looks at these lines again. Many pages have changed in few lines, and then the first pass takes
// nearly all of the time, so it is kept short: it stores no masks.

// --- plain C++ -----------------------------------------------------------------------------------

/// For each byte of a word that is not 0: sets the bit of that byte.
std::uint64_t bytes_set(std::uint64_t word) {
  word |= word >> 4;
  word |= word >> 2;
  word |= word >> 1;
  word &= 0x0101'0101'0101'0101;
  // The product moves the bit of each byte to a place of its own in the highest byte.
  return word * 0x0102'0408'1020'4080 >> 56;
}

std::uint64_t changed_lines_plain(const std::byte* page, const std::byte* twin) {
  std::uint64_t lines = 0;
  for (std::size_t l = 0; l < lines_in_page; ++l, page += line_bytes, twin += line_bytes) {
    std::uint64_t differing = 0;
    for (std::size_t i = 0; i < line_bytes; i += 8) differing |= load(page + i) ^ load(twin + i);
    lines |= std::uint64_t{differing != 0} << l;
  }
  return lines;
}

std::uint64_t changed_plain(const std::byte* line, const std::byte* twin) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < line_bytes; i += 8)
    mask |= bytes_set(load(line + i) ^ load(twin + i)) << i;
  return mask;
}

std::byte* pack_plain(std::byte* to, const std::byte* line, std::uint64_t changed) {
  if (changed == all) {
    std::memcpy(to, line, line_bytes);
    return to + line_bytes;
  }
  for (; changed != 0; changed &= changed - 1) *to++ = line[first_one(changed)];
  return to;
}

const std::byte* unpack_plain(std::byte* line, const std::byte* values, std::uint64_t changed) {
  if (changed == all) {
    std::memcpy(line, values, line_bytes);
    return values + line_bytes;
  }
  for (; changed != 0; changed &= changed - 1) line[first_one(changed)] = *values++;
  return values;
}

std::size_t make_plain(std::byte* to, const std::byte* page, const std::byte* twin) {
  std::uint64_t lines = changed_lines_plain(page, twin);
  if (lines == 0) return 0;
  store(to, lines);
  std::byte* mask = to + 8;
  std::byte* value = mask + 8 * ones(lines);
  for (; lines != 0; lines &= lines - 1, mask += 8) {
    const std::size_t at = first_one(lines) * line_bytes;
    const std::uint64_t changed = changed_plain(page + at, twin + at);
    store(mask, changed);
    value = pack_plain(value, page + at, changed);
  }
  return static_cast<std::size_t>(value - to);
}

void apply_plain(std::byte* page, const std::byte* diff, std::size_t bytes) {
  auto [lines, mask, value] = parts(diff, bytes);
  for (; lines != 0; lines &= lines - 1, mask += 8)
    value = unpack_plain(page + first_one(lines) * line_bytes, value, load(mask));
}

bool is_diff_plain(const std::byte* diff, std::size_t bytes) {
  return has_right_length(diff, bytes);
}

#if defined(__x86_64__)

// --- AVX2 ----------------------------------------------------------------------------------------

/// For each mask of 8 bytes, the shuffle that packs the masked ones, and the one that puts packed
/// bytes where they belong. An index with its highest bit set stands for no byte. (The instructions
/// that do this without a table, PEXT and PDEP, are slow on AMD's processors before Zen 3.)
struct shuffles {
  std::array<std::uint64_t, 256> pack, unpack;
};
constexpr shuffles shuffle = [] {
  shuffles s{};
  for (std::uint64_t mask = 0; mask < 256; ++mask) {
    std::uint64_t& pack = s.pack[mask] = all;
    std::uint64_t& unpack = s.unpack[mask] = all;
    std::uint64_t packed = 0;
    for (std::uint64_t i = 0; i < 8; ++i) {
      if ((mask >> i & 1) == 0) continue;
      pack ^= (0xff ^ i) << 8 * packed;
      unpack ^= (0xff ^ packed) << 8 * i;
      ++packed;
    }
  }
  return s;
}();

#define SOJOURN_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))

SOJOURN_AVX2 inline __m128i load_8(const void* from) {
  return _mm_loadl_epi64(static_cast<const __m128i*>(from));
}

SOJOURN_AVX2 inline void store_8(std::byte* to, __m128i word) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), word);
}

SOJOURN_AVX2 inline std::uint32_t equal_32(const std::byte* a, const std::byte* b) {
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(
      _mm256_cmpeq_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a)),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)))));
}

SOJOURN_AVX2 inline std::uint64_t changed_avx2(const std::byte* line, const std::byte* twin) {
  return ~(equal_32(line, twin) | std::uint64_t{equal_32(line + 32, twin + 32)} << 32);
}

/// Writes up to 7 bytes beyond those it packs, but none beyond a whole line.
SOJOURN_AVX2 inline std::byte* pack_avx2(std::byte* to, const std::byte* line,
                                         std::uint64_t changed) {
  if (changed == all) {
    std::memcpy(to, line, line_bytes);
    return to + line_bytes;
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < line_bytes; i += 8, changed >>= 8) {
    const std::uint64_t of_word = changed & 0xff;
    store_8(to, _mm_shuffle_epi8(load_8(line + i), load_8(&shuffle.pack[of_word])));
    to += ones(of_word);
  }
  return to;
}

/// Reads up to 7 bytes beyond the values it unpacks, but none beyond a whole line.
SOJOURN_AVX2 inline const std::byte* unpack_avx2(std::byte* line, const std::byte* values,
                                                 std::uint64_t changed) {
  if (changed == all) {
    std::memcpy(line, values, line_bytes);
    return values + line_bytes;
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < line_bytes; i += 8, changed >>= 8) {
    const std::uint64_t of_word = changed & 0xff;
    const __m128i places = load_8(&shuffle.unpack[of_word]);
    const __m128i unpacked = _mm_shuffle_epi8(load_8(values), places);
    store_8(line + i, _mm_blendv_epi8(unpacked, load_8(line + i), places));
    values += ones(of_word);
  }
  return values;
}

SOJOURN_AVX2 std::size_t make_avx2(std::byte* to, const std::byte* page, const std::byte* twin) {
  std::uint64_t lines = 0;
  for (std::size_t l = 0; l < lines_in_page; ++l) {
    const std::size_t at = l * line_bytes;
    lines |= std::uint64_t{changed_avx2(page + at, twin + at) != 0} << l;
  }
  if (lines == 0) return 0;
  store(to, lines);
  std::byte* mask = to + 8;
  std::byte* value = mask + 8 * ones(lines);
  for (; lines != 0; lines &= lines - 1, mask += 8) {
    const std::size_t at = first_one(lines) * line_bytes;
    const std::uint64_t changed = changed_avx2(page + at, twin + at);
    store(mask, changed);
    value = pack_avx2(value, page + at, changed);
  }
  return static_cast<std::size_t>(value - to);
}

SOJOURN_AVX2 void apply_avx2(std::byte* page, const std::byte* diff, std::size_t bytes) {
  auto [lines, mask, value] = parts(diff, bytes);
  const std::byte* const end = diff + bytes;
  for (; lines != 0; lines &= lines - 1, mask += 8) {
    std::byte* const line = page + first_one(lines) * line_bytes;
    const bool has_room = end - value >= static_cast<std::ptrdiff_t>(line_bytes);
    value = has_room ? unpack_avx2(line, value, load(mask)) : unpack_plain(line, value, load(mask));
  }
}

SOJOURN_AVX2 bool is_diff_avx2(const std::byte* diff, std::size_t bytes) {
  return has_right_length(diff, bytes);
}

// --- AVX-512 with VBMI2 --------------------------------------------------------------------------

#define SOJOURN_AVX512 __attribute__((target("avx512f,avx512bw,avx512vbmi2,bmi,bmi2,popcnt")))

SOJOURN_AVX512 inline std::uint64_t changed_avx512(__m512i line, const std::byte* twin) {
  return _mm512_cmpneq_epi8_mask(line, _mm512_loadu_si512(twin));
}

SOJOURN_AVX512 std::size_t make_avx512(std::byte* to, const std::byte* page,
                                       const std::byte* twin) {
  std::uint64_t lines = 0;
  for (std::size_t l = 0; l < lines_in_page; ++l) {
    const std::size_t at = l * line_bytes;
    lines |= std::uint64_t{changed_avx512(_mm512_loadu_si512(page + at), twin + at) != 0} << l;
  }
  if (lines == 0) return 0;
  store(to, lines);
  std::byte* mask = to + 8;
  std::byte* value = mask + 8 * ones(lines);
  for (; lines != 0; lines &= lines - 1, mask += 8) {
    const std::size_t at = first_one(lines) * line_bytes;
    const __m512i line = _mm512_loadu_si512(page + at);
    const std::uint64_t changed = changed_avx512(line, twin + at);
    store(mask, changed);
    // Packed in a register and stored as a whole line, for which there is room: some processors
    // take far longer to pack into memory.
    _mm512_storeu_si512(value, _mm512_maskz_compress_epi8(changed, line));
    value += ones(changed);
  }
  return static_cast<std::size_t>(value - to);
}

SOJOURN_AVX512 void apply_avx512(std::byte* page, const std::byte* diff, std::size_t bytes) {
  auto [lines, mask, value] = parts(diff, bytes);
  for (; lines != 0; lines &= lines - 1, mask += 8) {
    std::byte* const line = page + first_one(lines) * line_bytes;
    const std::uint64_t changed = load(mask);
    // The load reads no more bytes than it unpacks: what follows may lie beyond the diff.
    _mm512_mask_storeu_epi8(line, changed, _mm512_maskz_expandloadu_epi8(changed, value));
    value += ones(changed);
  }
}

SOJOURN_AVX512 bool is_diff_avx512(const std::byte* diff, std::size_t bytes) {
  return has_right_length(diff, bytes);
}

constexpr std::array codings{diff_coding{"AVX-512", make_avx512, apply_avx512, is_diff_avx512},
                             diff_coding{"AVX2", make_avx2, apply_avx2, is_diff_avx2},
                             diff_coding{"plain", make_plain, apply_plain, is_diff_plain}};

std::size_t first_coding() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") ||
      !__builtin_cpu_supports("bmi2") || !__builtin_cpu_supports("popcnt")) {
    return 2;
  }
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2") ? 0 : 1;
}

#else

constexpr std::array codings{diff_coding{"plain", make_plain, apply_plain, is_diff_plain}};
std::size_t first_coding() { return 0; }

#endif

/// The coding that this processor uses.
const diff_coding coding = diff_codings().front();

}  // namespace

std::span<const diff_coding> diff_codings() { return std::span(codings).subspan(first_coding()); }

std::size_t make_diff(std::byte* to, const std::byte* page, const std::byte* twin) {
  return coding.make(to, page, twin);
}

void apply_diff(std::byte* page, const std::byte* diff, std::size_t bytes) {
  coding.apply(page, diff, bytes);
}

bool is_diff(const std::byte* diff, std::size_t bytes) { return coding.is_diff(diff, bytes); }

std::size_t changed_bytes(const std::byte* diff, std::size_t bytes) {
  return bytes == 0 ? 0 : bytes - 8 - 8 * ones(load(diff));
}

std::optional<std::size_t> first_overlap(const std::byte* a, std::size_t a_bytes,
                                         const std::byte* b, std::size_t b_bytes) {
  const parts in_a(a, a_bytes);
  const parts in_b(b, b_bytes);
  for (std::uint64_t both = in_a.lines & in_b.lines; both != 0; both &= both - 1) {
    const std::size_t line = first_one(both);
    const std::uint64_t before = ~(all << line);
    const std::uint64_t shared = load(in_a.masks + 8 * ones(in_a.lines & before)) &
                                 load(in_b.masks + 8 * ones(in_b.lines & before));
    if (shared != 0) return line * line_bytes + first_one(shared);
  }
  return std::nullopt;
}

}  // namespace sojourn::detail::pages
