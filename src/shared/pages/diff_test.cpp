// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/diff.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

using sojourn::detail::pages::apply_diff;
using sojourn::detail::pages::changed_bytes;
using sojourn::detail::pages::diff_bytes_max;
using sojourn::detail::pages::diff_coding;
using sojourn::detail::pages::diff_codings;
using sojourn::detail::pages::differs;
using sojourn::detail::pages::first_overlap;
using sojourn::detail::pages::is_diff;
using sojourn::detail::pages::make_diff;
using sojourn::detail::pages::page_bytes;

using byte_vector = std::vector<std::byte>;
using page_image = std::array<std::byte, page_bytes>;
using random_numbers = std::mt19937_64;

/// Memory that ends, and begins, where nothing may be read or written: a store or a load outside is
/// a crash, in every build.
class fenced {
 public:
  explicit fenced(std::size_t bytes) : bytes_(bytes), room_((bytes + fence - 1) / fence * fence) {
    void* all = mmap(nullptr, room_ + 2 * fence, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(all, MAP_FAILED);
    begin_ = static_cast<std::byte*>(all) + fence;
    EXPECT_EQ(mprotect(begin_, room_, PROT_READ | PROT_WRITE), 0);
  }
  fenced(const fenced&) = delete;
  fenced& operator=(const fenced&) = delete;
  ~fenced() { munmap(begin_ - fence, room_ + 2 * fence); }

  std::byte* behind_a_fence() { return begin_; }
  std::byte* before_a_fence() { return before_a_fence(bytes_); }
  std::byte* before_a_fence(std::size_t bytes) { return begin_ + room_ - bytes; }
  /// Copies the bytes to where they end at the fence.
  const std::byte* before_a_fence(const byte_vector& bytes) {
    return std::copy(bytes.begin(), bytes.end(), before_a_fence(bytes.size())) - bytes.size();
  }

 private:
  // As long as the longest page of any processor.
  static constexpr std::size_t fence = 65536;
  std::size_t bytes_, room_;
  std::byte* begin_;
};

/// The functions that the runtime calls, and each coding that they choose from.
std::vector<diff_coding> all_codings() {
  std::vector<diff_coding> all(diff_codings().begin(), diff_codings().end());
  all.push_back({"the chosen ones", make_diff, apply_diff, is_diff});
  return all;
}

/// What a failure adds.
std::string where(const diff_coding& by, int round) {
  return std::string(by.instructions) + ", round " + std::to_string(round);
}

// --- a model, which goes byte by byte ------------------------------------------------------------

std::vector<std::size_t> differing_bytes(const page_image& page, const page_image& twin) {
  std::vector<std::size_t> offsets;
  for (std::size_t i = 0; i < page_bytes; ++i)
    if (page[i] != twin[i]) offsets.push_back(i);
  return offsets;
}

void put(byte_vector& to, std::uint64_t word) {
  for (int i = 0; i < 8; ++i) to.push_back(static_cast<std::byte>(word >> 8 * i));
}

std::uint64_t word_at(const byte_vector& bytes, std::size_t offset) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < 8; ++i)
    word |= std::to_integer<std::uint64_t>(bytes[offset + i]) << 8 * i;
  return word;
}

byte_vector diff_by_model(const page_image& page, const page_image& twin) {
  std::uint64_t lines = 0;
  std::array<std::uint64_t, 64> masks{};
  byte_vector values;
  for (std::size_t i : differing_bytes(page, twin)) {
    lines |= std::uint64_t{1} << i / 64;
    masks[i / 64] |= std::uint64_t{1} << i % 64;
    values.push_back(page[i]);
  }
  byte_vector diff;
  if (lines == 0) return diff;
  put(diff, lines);
  for (std::uint64_t mask : masks)
    if (mask != 0) put(diff, mask);
  diff.insert(diff.end(), values.begin(), values.end());
  return diff;
}

/// Which bytes of the page a diff changes; nothing when it is no diff.
std::optional<std::vector<std::size_t>> changed_by_model(const byte_vector& diff) {
  std::vector<std::size_t> offsets;
  if (diff.empty()) return offsets;
  if (diff.size() < 8) return std::nullopt;
  std::size_t at = 8;
  for (std::size_t line = 0; line < 64; ++line) {
    if ((word_at(diff, 0) >> line & 1) == 0) continue;
    if (diff.size() < at + 8) return std::nullopt;
    for (std::size_t i = 0; i < 64; ++i)
      if ((word_at(diff, at) >> i & 1) != 0) offsets.push_back(line * 64 + i);
    at += 8;
  }
  if (diff.size() != at + offsets.size()) return std::nullopt;
  return offsets;
}

page_image applied_by_model(page_image page, const byte_vector& diff) {
  const std::vector<std::size_t> offsets = *changed_by_model(diff);
  auto value = diff.end() - static_cast<std::ptrdiff_t>(offsets.size());
  for (std::size_t i : offsets) page[i] = *value++;
  return page;
}

// --- random pages --------------------------------------------------------------------------------

page_image random_page(random_numbers& random) {
  page_image page;
  for (std::byte& b : page) b = static_cast<std::byte>(random());
  return page;
}

void change(page_image& page, std::size_t from, std::size_t bytes, random_numbers& random) {
  for (std::size_t i = from; i < std::min(from + bytes, page_bytes); ++i)
    page[i] ^= static_cast<std::byte>(1 + random() % 255);
}

/// Stores such as programs do: nothing, few bytes, many, runs, whole lines, parts of each word.
page_image changed_copy(const page_image& twin, random_numbers& random) {
  page_image page = twin;
  switch (random() % 6) {
    case 0:
      for (std::uint64_t n = random() % 4; n != 0; --n)
        change(page, random() % page_bytes, 1, random);
      break;
    case 1: {
      const std::uint64_t one_in = 1 + random() % 64;
      for (std::size_t i = 0; i < page_bytes; ++i)
        if (random() % one_in == 0) change(page, i, 1, random);
      break;
    }
    case 2:
      for (std::uint64_t n = random() % 10; n != 0; --n)
        change(page, random() % page_bytes, random() % 300, random);
      break;
    case 3:
      for (std::size_t i = 0; i < page_bytes; i += 64)
        if (random() % 2 == 0) change(page, i, 64, random);
      break;
    case 4: {
      const std::size_t bytes = 1 + random() % 8;
      for (std::size_t i = 0; i < page_bytes; i += 8) change(page, i, bytes, random);
      break;
    }
    default:
      change(page, 0, page_bytes, random);
  }
  return page;
}

byte_vector random_diff(random_numbers& random) {
  const page_image twin = random_page(random);
  return diff_by_model(changed_copy(twin, random), twin);
}

// --- making and applying -------------------------------------------------------------------------

TEST(diff, uses_the_fastest_coding_of_this_processor) {
  const auto codings = diff_codings();
  ASSERT_FALSE(codings.empty());
  EXPECT_STREQ(codings.back().instructions, "plain") << "which every processor has";
#if defined(__x86_64__)
  EXPECT_EQ(codings.size(), __builtin_cpu_supports("avx512vbmi2") ? 3u
                            : __builtin_cpu_supports("avx2")      ? 2u
                                                                  : 1u);
#endif
}

TEST(diff, is_what_a_loop_over_bytes_makes_whatever_the_processor) {
  random_numbers random(17);
  fenced page_memory(page_bytes), twin_memory(page_bytes), diff_memory(diff_bytes_max);
  for (int round = 0; round < 1000; ++round) {
    const page_image twin = random_page(random);
    const page_image page = changed_copy(twin, random);
    const byte_vector expected = diff_by_model(page, twin);
    std::byte* page_at = page_memory.before_a_fence();
    std::byte* twin_at = twin_memory.behind_a_fence();
    if (random() % 2 == 0) std::swap(page_at, twin_at);
    std::copy(page.begin(), page.end(), page_at);
    std::copy(twin.begin(), twin.end(), twin_at);
    std::byte* const to =
        random() % 2 == 0 ? diff_memory.before_a_fence() : diff_memory.behind_a_fence();
    for (const diff_coding& by : all_codings()) {
      const std::size_t bytes = by.make(to, page_at, twin_at);
      ASSERT_EQ(bytes, expected.size()) << where(by, round);
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), to)) << where(by, round);
    }
  }
}

TEST(diff, finds_one_byte_at_each_offset) {
  random_numbers random(19);
  const page_image twin = random_page(random);
  std::array<std::byte, diff_bytes_max> diff;
  for (const diff_coding& by : all_codings()) {
    for (std::size_t i = 0; i < page_bytes; ++i) {
      page_image page = twin;
      page[i] ^= static_cast<std::byte>(1u << i % 8);
      ASSERT_EQ(by.make(diff.data(), page.data(), twin.data()), 8u + 8u + 1u)
          << by.instructions << ", offset " << i;
      ASSERT_EQ(diff[16], page[i]) << by.instructions << ", offset " << i;
      page_image copy = twin;
      by.apply(copy.data(), diff.data(), 17);
      ASSERT_EQ(copy, page) << by.instructions << ", offset " << i;
    }
  }
}

TEST(diff, of_equal_pages_is_empty) {
  random_numbers random(23);
  const page_image page = random_page(random);
  const page_image twin = page;
  EXPECT_FALSE(differs(page.data(), twin.data()));
  std::array<std::byte, diff_bytes_max> diff;
  for (const diff_coding& by : all_codings()) {
    EXPECT_EQ(by.make(diff.data(), page.data(), twin.data()), 0u) << by.instructions;
    EXPECT_TRUE(by.is_diff(nullptr, 0)) << by.instructions;
    page_image copy = page;
    by.apply(copy.data(), nullptr, 0);
    EXPECT_EQ(copy, page) << by.instructions;
  }
}

TEST(diff, of_pages_that_differ_in_every_byte_is_the_longest) {
  random_numbers random(29);
  const page_image twin = random_page(random);
  page_image page = twin;
  for (std::byte& b : page) b = ~b;
  fenced diff(diff_bytes_max);
  for (const diff_coding& by : all_codings()) {
    EXPECT_EQ(by.make(diff.before_a_fence(), page.data(), twin.data()), diff_bytes_max)
        << by.instructions;
    page_image copy = twin;
    by.apply(copy.data(), diff.before_a_fence(), diff_bytes_max);
    EXPECT_EQ(copy, page) << by.instructions;
  }
}

TEST(diff, gives_the_page_back_on_a_copy_of_the_twin) {
  random_numbers random(31);
  for (int round = 0; round < 1000; ++round) {
    const page_image twin = random_page(random);
    const page_image page = changed_copy(twin, random);
    std::array<std::byte, diff_bytes_max> diff;
    for (const diff_coding& by : all_codings()) {
      const std::size_t bytes = by.make(diff.data(), page.data(), twin.data());
      page_image copy = twin;
      by.apply(copy.data(), diff.data(), bytes);
      ASSERT_EQ(copy, page) << where(by, round);
    }
  }
}

TEST(diff, leaves_alone_what_did_not_change_and_reads_nothing_beyond_its_end) {
  random_numbers random(37);
  fenced page_memory(page_bytes), diff_memory(diff_bytes_max);
  for (int round = 0; round < 1000; ++round) {
    const byte_vector diff = random_diff(random);
    const page_image other = random_page(random);
    const page_image expected = applied_by_model(other, diff);
    std::byte* const page =
        random() % 2 == 0 ? page_memory.before_a_fence() : page_memory.behind_a_fence();
    for (const diff_coding& by : all_codings()) {
      std::copy(other.begin(), other.end(), page);
      by.apply(page, diff_memory.before_a_fence(diff), diff.size());
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), page)) << where(by, round);
    }
  }
}

TEST(diff, of_two_writers_may_be_applied_in_either_order_when_no_byte_is_in_both) {
  random_numbers random(41);
  for (int round = 0; round < 200; ++round) {
    const page_image twin = random_page(random);
    page_image even = twin, odd = twin;
    change(even, 0, page_bytes, random);
    change(odd, 0, page_bytes, random);
    page_image both = even;
    for (std::size_t i = 0; i < page_bytes; ++i) {
      (i % 2 == 0 ? odd : even)[i] = twin[i];
      if (i % 2 != 0) both[i] = odd[i];
    }
    const byte_vector first = diff_by_model(even, twin), second = diff_by_model(odd, twin);
    EXPECT_EQ(first_overlap(first.data(), first.size(), second.data(), second.size()),
              std::nullopt);
    for (const diff_coding& by : all_codings()) {
      page_image one = twin, other = twin;
      by.apply(one.data(), first.data(), first.size());
      by.apply(one.data(), second.data(), second.size());
      by.apply(other.data(), second.data(), second.size());
      by.apply(other.data(), first.data(), first.size());
      ASSERT_EQ(one, both) << where(by, round);
      ASSERT_EQ(other, both) << where(by, round);
    }
  }
}

TEST(diff, differs_where_a_single_byte_does) {
  random_numbers random(43);
  const page_image twin = random_page(random);
  for (std::size_t i = 0; i < page_bytes; ++i) {
    page_image page = twin;
    page[i] ^= std::byte{1};
    ASSERT_TRUE(differs(page.data(), twin.data())) << "offset " << i;
  }
}

// --- bytes from a message ------------------------------------------------------------------------

TEST(diff, cut_short_or_with_bytes_left_over_is_refused) {
  random_numbers random(47);
  fenced memory(diff_bytes_max + 1);
  for (int round = 0; round < 10; ++round) {
    byte_vector diff = random_diff(random);
    if (diff.empty()) continue;
    for (const diff_coding& by : all_codings()) {
      EXPECT_TRUE(by.is_diff(memory.before_a_fence(diff), diff.size())) << where(by, round);
      for (std::size_t bytes = 1; bytes < diff.size(); ++bytes) {
        const byte_vector part(diff.begin(), diff.begin() + static_cast<std::ptrdiff_t>(bytes));
        ASSERT_FALSE(by.is_diff(memory.before_a_fence(part), bytes))
            << where(by, round) << ", the first " << bytes << " of " << diff.size() << " bytes";
      }
      byte_vector longer = diff;
      longer.push_back(std::byte{});
      EXPECT_FALSE(by.is_diff(memory.before_a_fence(longer), longer.size())) << where(by, round);
    }
  }
}

/// Bytes that look like a diff in this or that respect.
byte_vector doubtful_diff(random_numbers& random) {
  byte_vector diff = random_diff(random);
  const auto somewhere = [&](std::size_t bytes) {
    return diff.begin() + static_cast<std::ptrdiff_t>(random() % bytes);
  };
  switch (random() % 6) {
    case 0:  // Random bytes, few or many lines in the first word.
      diff.resize(random() % (diff_bytes_max + 100));
      for (std::byte& b : diff) b = static_cast<std::byte>(random() & random());
      if (diff.size() > 8 && random() % 2 == 0) std::fill_n(diff.begin() + 1, 7, std::byte{});
      break;
    case 1:  // A bit of the masks.
      if (!diff.empty()) *somewhere(std::min<std::size_t>(diff.size(), 80)) ^= std::byte{4};
      break;
    case 2:  // A bit anywhere: mostly of the values, which may be anything.
      if (!diff.empty()) *somewhere(diff.size()) ^= std::byte{32};
      break;
    case 3:  // Bytes at the end.
      diff.resize(random() % 2 == 0 ? diff.size() + random() % 9 : diff.size() - diff.size() / 3);
      break;
    case 4:  // Two bytes of the masks change places: as many bits, of other bytes.
      if (diff.size() > 16) std::iter_swap(somewhere(16), somewhere(16));
      break;
    default:  // All lines, no bytes; or none of both.
      diff.assign(8 + 64 * 8, std::byte{});
      if (random() % 2 == 0) diff.resize(8);
      if (diff.size() > 8) std::fill_n(diff.begin(), 8, std::byte{255});
  }
  return diff;
}

TEST(diff, that_is_malformed_is_refused_and_others_touch_nothing_outside_the_page) {
  random_numbers random(53);
  fenced page_memory(page_bytes), diff_memory(2 * diff_bytes_max);
  int refused = 0, applied = 0;
  for (int round = 0; round < 3000; ++round) {
    const byte_vector diff = doubtful_diff(random);
    const bool usable = changed_by_model(diff).has_value();
    usable ? ++applied : ++refused;
    const std::byte* const bytes = diff_memory.before_a_fence(diff);
    const page_image other = random_page(random);
    std::byte* const page =
        random() % 2 == 0 ? page_memory.before_a_fence() : page_memory.behind_a_fence();
    for (const diff_coding& by : all_codings()) {
      ASSERT_EQ(by.is_diff(bytes, diff.size()), usable) << where(by, round);
      if (!usable) continue;
      std::copy(other.begin(), other.end(), page);
      by.apply(page, bytes, diff.size());
      const page_image expected = applied_by_model(other, diff);
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), page)) << where(by, round);
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(applied, 500);
}

// --- what a diff tells ---------------------------------------------------------------------------

TEST(diff, tells_how_many_bytes_it_changes) {
  random_numbers random(59);
  for (int round = 0; round < 1000; ++round) {
    const byte_vector diff = random_diff(random);
    ASSERT_EQ(changed_bytes(diff.data(), diff.size()), changed_by_model(diff)->size())
        << "round " << round;
  }
}

TEST(diff, tells_the_first_byte_that_another_changes_too) {
  random_numbers random(61);
  int overlapping = 0, apart = 0;
  for (int round = 0; round < 2000; ++round) {
    const byte_vector a = random_diff(random), b = random_diff(random);
    const std::vector<std::size_t> in_a = *changed_by_model(a), in_b = *changed_by_model(b);
    std::vector<std::size_t> in_both;
    std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(),
                          std::back_inserter(in_both));
    const auto expected = in_both.empty() ? std::nullopt : std::optional(in_both.front());
    ASSERT_EQ(first_overlap(a.data(), a.size(), b.data(), b.size()), expected) << "round " << round;
    ASSERT_EQ(first_overlap(b.data(), b.size(), a.data(), a.size()), expected) << "round " << round;
    expected ? ++overlapping : ++apart;
  }
  EXPECT_GT(overlapping, 200);
  EXPECT_GT(apart, 200);
}

}  // namespace
