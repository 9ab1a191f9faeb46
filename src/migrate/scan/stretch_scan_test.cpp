// SPDX-License-Identifier: Apache-2.0
#include "migrate/scan/stretch_scan.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "memory/region_test.hpp"
#include "memory/stack_slots.hpp"
#include "migrate/scan/scan.hpp"
#include "sojourn/detail/asan.hpp"

namespace {

using namespace sojourn::detail;

piece* no_watch() { return nullptr; }

/// Frames of 1 KiB on a stack of this rank. In their middle is a mark with two words of arguments
/// and room for three words of a result that nobody has written.
struct frames {
  static constexpr std::size_t bytes = 1024;
  static constexpr std::size_t argument_words = 2;
  static constexpr std::size_t unwritten_words = 3;

  frames() {
    map_as(0, 4 * gib, 1);
    slots.attach(0, no_watch);
    attach_scan();
    slot = slots.acquire();
    slots.open(slot);
    const std::uint64_t high = slots.high(slot) - 4096;
    younger = reinterpret_cast<mark*>(high - bytes / 2);
    younger->words_behind = behind_mark{argument_words * 8, unwritten_words * 8}.words();
    which = {.low = high - bytes,
             .high = high,
             .younger = younger,
             .older = high + 256,
             .older_end = high + 256 + sizeof(mark),
             .thread_has_heap = false,
             .to_another_host = false};
    arguments = reinterpret_cast<std::uint64_t>(younger) + sizeof(mark);
  }

  /// What the scan finds when `word` lies at `at`; puts back what was there.
  word_that_stays with(std::uint64_t word, std::uint64_t at) const {
    std::uint64_t before;
    std::memcpy(&before, reinterpret_cast<void*>(at), sizeof before);
    std::memcpy(reinterpret_cast<void*>(at), &word, sizeof word);
    const word_that_stays found = find_word_that_stays(which);
    std::memcpy(reinterpret_cast<void*>(at), &before, sizeof before);
    return found;
  }
  stays_with what(std::uint64_t word) const { return with(word, which.low + 64).what; }

  std::uint32_t slot;
  mark* younger;
  std::uint64_t arguments;
  leaving_frames which;
};

template <class T>
std::uint64_t address_of(T* p) {
  return reinterpret_cast<std::uint64_t>(p);
}

void private_memory_at_any_byte_of_any_alignment() {
  const frames f;
  CLAIM(find_word_that_stays(f.which).what == stays_with::nothing);
  const std::vector<char> own(1000);
  for (std::uint64_t target = 0; target < 8; ++target) {
    const std::uint64_t word = address_of(own.data()) + target;
    for (std::uint64_t place = 0; place < 8; ++place) {
      const word_that_stays found = f.with(word, f.which.low + 64 + place);
      CLAIM(found.what == stays_with::private_memory);
      CLAIM(found.at == f.which.low + 64 + place && found.word == word);
    }
    // The first word, and the last.
    CLAIM(f.with(word, f.which.low).what == stays_with::private_memory);
    CLAIM(f.with(word, f.which.high - 8).what == stays_with::private_memory);
  }
}

void the_heap_as_it_is_now() {
  const frames f;
  const std::uint64_t heap_end = address_of(sbrk(0));
  CLAIM(f.what(heap_end + 4096) == stays_with::nothing);
  CLAIM(sbrk(1 << 20) != reinterpret_cast<void*>(-1));
  CLAIM(f.what(heap_end + 4096) == stays_with::private_memory);
  CLAIM(f.what(heap_end + (1 << 20) - 1) == stays_with::private_memory);
}

void mappings_wherever_the_program_makes_them() {
  const frames f;
  const std::uint64_t middle = address_of(sbrk(0)) / 4096 * 4096 + (std::uint64_t{3} << 30);
  for (std::uint64_t wanted : {middle, base - (std::uint64_t{1} << 40), base + 64 * gib}) {
    if (SOJOURN_ASAN && wanted == middle) continue;  // the sanitizer's own lies there
    CLAIM(f.what(wanted + 24) == stays_with::nothing);
    void* got = mmap(reinterpret_cast<void*>(wanted), 4096, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CLAIM(address_of(got) == wanted);
    CLAIM(f.what(wanted + 24) == stays_with::private_memory);
    CLAIM(f.what(wanted + 4096) == stays_with::nothing);
    munmap(got, 4096);
    CLAIM(f.what(wanted + 24) == stays_with::nothing);
  }
}

extern "C" char end;

void numbers_between_the_program_and_its_heap() {
  const frames f;
  const private_memory own = private_memory_now();
  for (std::uint64_t n = address_of(&end) + 4096; n < own.heap_low; n += own.heap_low / 50) {
    CLAIM(f.what(n / 8 * 8) == stays_with::nothing);
  }
  CLAIM(f.what(own.heap_low - 8) == stays_with::nothing);
  if (SOJOURN_ASAN) return;  // it has memory wherever these numbers are
  // Many numbers that look like addresses; none of them is one.
  auto* words = reinterpret_cast<std::uint64_t*>(f.which.low);
  for (std::uint64_t i = 0; i < 60; ++i) words[i] = own.heap_high + (i << 33) + (1 << 20);
  CLAIM(find_word_that_stays(f.which).what == stays_with::nothing);
  const auto object = std::make_unique<int>();
  words[59] = address_of(object.get());
  CLAIM(find_word_that_stays(f.which).what == stays_with::private_memory);
}

void frames_that_stay() {
  const frames f;
  CLAIM(f.what(f.which.low + 100) == stays_with::nothing);
  CLAIM(f.what(f.which.high + 128) == stays_with::older_frames);
  CLAIM(f.what(f.which.high + 131) == stays_with::older_frames);
  CLAIM(f.what(f.which.older + 8) == stays_with::nothing);
  CLAIM(f.what(f.which.low - 64) == stays_with::nothing);
  const std::uint32_t other = slots.acquire();
  CLAIM(f.what(slots.high(other) - 200) == stays_with::another_stack);
  CLAIM(f.what(slots.low(other) + 200) == stays_with::nothing);
  slots.release(other);
  CLAIM(f.what(slots.high(other) - 200) == stays_with::nothing);
}

void frames_below_marks_of_both_kinds() {
  frames f;
  CLAIM(f.what(f.which.high + 16) == stays_with::nothing);
  // There is no code of the runtime between the frames and their caller, so the words point to
  // variables of the caller.
  f.which.older = f.which.older_end = f.which.high;
  for (std::uint64_t word = f.which.high; word < f.which.high + 64; word += 8) {
    CLAIM(f.what(word) == stays_with::older_frames);
  }
}

void arguments_of_a_child_that_stays() {
  const frames f;
  CLAIM(f.with(f.which.low + 100, f.arguments).what == stays_with::these_frames);
  CLAIM(f.with(f.which.low + 100, f.arguments + 8).what == stays_with::these_frames);
  CLAIM(f.with(f.which.low + 100, f.arguments + 3).what == stays_with::these_frames);
  CLAIM(f.with(f.which.low + 100, f.arguments - sizeof(mark) - 8).what == stays_with::nothing);
  // Room for the result, and the mark itself.
  const auto object = std::make_unique<int>();
  for (std::size_t i = 0; i < frames::unwritten_words; ++i) {
    CLAIM(f.with(address_of(object.get()), f.arguments + (frames::argument_words + i) * 8).what ==
          stays_with::nothing);
  }
  CLAIM(f.with(address_of(object.get()), address_of(&f.younger->ticket)).what ==
        stays_with::nothing);
  CLAIM(f.with(address_of(object.get()),
               f.arguments + (frames::argument_words + frames::unwritten_words) * 8)
            .what == stays_with::private_memory);
}

void youngest_frames() {
  frames f;
  f.which.younger = nullptr;
  const auto object = std::make_unique<int>();
  // Looks everywhere, also where a mark and the room for a result would be passed over.
  for (std::uint64_t at = f.which.low; at < f.which.high; at += 8) {
    CLAIM(f.with(address_of(object.get()), at).what == stays_with::private_memory);
    CLAIM(f.with(f.which.low + 100, at).what == stays_with::nothing);
  }
  CLAIM(f.with(address_of(object.get()), f.which.high - 8).at == f.which.high - 8);
}

void heaps_of_threads() {
  frames f;
  CLAIM(f.what(addresses.arenas + 4096) == stays_with::nothing);
  f.which.thread_has_heap = true;
  CLAIM(f.what(addresses.arenas + 4096) == stays_with::thread_heap);
}

void the_global_heap() {
  frames f;
  for (const std::uint64_t word :
       {addresses.heap, addresses.heap + 4096, addresses.heap + addresses.heap_bytes() - 1}) {
    f.which.to_another_host = false;
    CLAIM(f.what(word) == stays_with::nothing);
    f.which.to_another_host = true;
    CLAIM(f.what(word) == stays_with::heap_of_host);
  }
  CLAIM(f.what(addresses.heap - 1) == stays_with::nothing);
  CLAIM(f.what(addresses.heap + addresses.heap_bytes()) == stays_with::nothing);
}

TEST(stretch_scan, private_memory_stays_at_any_byte_and_of_any_alignment) {
  EXPECT_CLAIMS(private_memory_at_any_byte_of_any_alignment);
}
TEST(stretch_scan, the_heap_is_looked_at_as_it_is_now) { EXPECT_CLAIMS(the_heap_as_it_is_now); }
TEST(stretch_scan, mappings_are_looked_at_as_they_are_now) {
  EXPECT_CLAIMS(mappings_wherever_the_program_makes_them);
}
TEST(stretch_scan, numbers_are_no_addresses) {
  EXPECT_CLAIMS(numbers_between_the_program_and_its_heap);
}
TEST(stretch_scan, older_frames_and_other_stacks_stay) { EXPECT_CLAIMS(frames_that_stay); }
TEST(stretch_scan, only_a_mark_in_the_frame_has_words_of_the_runtime_above_the_frames) {
  EXPECT_CLAIMS(frames_below_marks_of_both_kinds);
}
TEST(stretch_scan, frames_that_a_child_was_given_addresses_of_stay_with_it) {
  EXPECT_CLAIMS(arguments_of_a_child_that_stays);
}
TEST(stretch_scan, of_the_youngest_frames_every_word_counts) { EXPECT_CLAIMS(youngest_frames); }
TEST(stretch_scan, the_global_heap_keeps_frames_on_their_host) { EXPECT_CLAIMS(the_global_heap); }
TEST(stretch_scan, the_heap_of_the_thread_stays) { EXPECT_CLAIMS(heaps_of_threads); }

TEST(behind_mark, counts_room_only_behind_arguments_that_are_all_counted) {
  mark m;
  m.words_behind = behind_mark{24, 16}.words();
  EXPECT_EQ(m.argument_words(), 3u);
  EXPECT_EQ(m.unwritten_words(), 2u);
  m.words_behind = behind_mark{8 * mark::argument_words_max, 8000}.words();
  EXPECT_EQ(m.argument_words(), mark::argument_words_max);
  EXPECT_EQ(m.unwritten_words(), mark::unwritten_words_max);
  m.words_behind = behind_mark{8 * mark::argument_words_max + 8, 16}.words();
  EXPECT_EQ(m.argument_words(), mark::argument_words_max);
  EXPECT_EQ(m.unwritten_words(), 0u);
}

}  // namespace
