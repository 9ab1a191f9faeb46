// SPDX-License-Identifier: Apache-2.0
#include "migrate/scan/stretch_scan.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "fiber/fork_links.hpp"
#include "memory/address_map.hpp"
#include "memory/stack_slots.hpp"
#include "migrate/scan/scan.hpp"
#include "sojourn/detail/asan.hpp"

#if SOJOURN_ASAN
#include <sanitizer/asan_interface.h>
#endif

// Frames are read word by word, including the address sanitizer's red zones in them.
#define READS_STRETCHES __attribute__((no_sanitize("address", "alignment")))

namespace sojourn::detail {

namespace {

// The kernel is asked, by a system call, about each of the first so many words. After that the list
// of mappings is read once, which costs as much as some hundred system calls.
constexpr int asked_one_by_one = 16;

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// True for addresses of the address sanitizer's shadow memory. Programs hold no such addresses,
/// but numbers from about 2^31 on look like them.
bool lies_in_shadow([[maybe_unused]] std::uint64_t word, [[maybe_unused]] std::uint64_t user_end) {
#if SOJOURN_ASAN
  static const auto shadow = [user_end] {
    std::size_t scale = 0, offset = 0;
    __asan_get_shadow_mapping(&scale, &offset);
    return std::pair<std::uint64_t, std::uint64_t>(offset, offset + (user_end >> scale));
  }();
  return word - shadow.first < shadow.second - shadow.first;
#else
  return false;
#endif
}

class look {
 public:
  explicit look(const leaving_frames& frames)
      : frames_(frames),
        slot_(slots.index_of(frames.high - 1)),
        slot_high_(slots.high(slot_)),
        private_(private_memory_now()) {}

  word_that_stays run() {
    const auto registers = reinterpret_cast<std::uint64_t>(frames_.registers.data());
    const std::uint64_t registers_end = registers + sizeof frames_.registers;
    if (find(registers, registers_end, sizeof(std::uint64_t))) return found_;
    if (frames_.younger == nullptr) return find_in({{frames_.low, frames_.high}}, {});
    const auto younger = reinterpret_cast<std::uint64_t>(frames_.younger);
    const std::uint64_t arguments = younger + sizeof(mark);
    const std::uint64_t unwritten =
        arguments + frames_.younger->argument_words() * sizeof(std::uint64_t);
    const std::uint64_t behind =
        unwritten + frames_.younger->unwritten_words() * sizeof(std::uint64_t);
    return find_in({{frames_.low, younger}, {arguments, unwritten}, {behind, frames_.high}},
                   arguments);
  }

 private:
  struct range {
    std::uint64_t from, to;
  };

  word_that_stays find_in(std::initializer_list<range> ranges, std::optional<std::uint64_t> given) {
    // Most addresses lie at multiples of 8 bytes. These places are looked at first, in an eighth of
    // the time, because a search that finds a reason to refuse is soon repeated.
    for (int by = 8; by >= 1; by -= 7) {
      for (const range& r : ranges) {
        in_arguments_ = r.from == given;
        if (find(r.from, r.to, by)) return found_;
      }
    }
    return {};
  }

  READS_STRETCHES bool find(std::uint64_t from, std::uint64_t to, std::uint64_t by) {
    if (to < from + sizeof(std::uint64_t)) return false;
    const std::uint64_t first = private_.heap_low;
    const std::uint64_t bytes = private_.user_end - first;
    for (std::uint64_t at = from; at <= to - sizeof(std::uint64_t); at += by) {
      if (by == 1 && at % sizeof(std::uint64_t) == 0) continue;  // looked at in the first pass
      std::uint64_t word;
      std::memcpy(&word, reinterpret_cast<const void*>(at), sizeof word);
      if (word - first >= bytes) [[likely]]
        continue;
      if (is_of_older(at)) continue;
      if (const stays_with what = target_of(word); what != stays_with::nothing) {
        found_ = {what, at, word};
        return true;
      }
    }
    return false;
  }

  bool is_of_older(std::uint64_t at) const {
    constexpr std::uint64_t of_link = offsetof(fork_link, registers);
    const auto link = reinterpret_cast<std::uint64_t>(frames_.link);
    if (link != 0 && at + sizeof(std::uint64_t) - 1 - link < of_link + sizeof(std::uint64_t) - 1)
      return true;
    return std::any_of(frames_.of_older.begin(), frames_.of_older.end(), [at](const auto* slot) {
      return at + sizeof(std::uint64_t) - 1 - reinterpret_cast<std::uint64_t>(slot) <
             2 * sizeof(std::uint64_t) - 1;
    });
  }

  stays_with target_of(std::uint64_t word) {
    if (word < private_.heap_high) return stays_with::private_memory;
    if (word - addresses.base < addresses.bytes) return target_in_region(word);
    return is_private(word) ? stays_with::private_memory : stays_with::nothing;
  }

  stays_with target_in_region(std::uint64_t word) const {
    if (addresses.in_arenas(word)) {
      return frames_.thread_has_heap ? stays_with::thread_heap : stays_with::nothing;
    }
    if (!addresses.in_stacks(word)) {
      const bool lies_in_heap = word - addresses.heap < addresses.heap_bytes();
      return lies_in_heap && frames_.to_another_host ? stays_with::heap_of_host
                                                     : stays_with::nothing;
    }
    if (word - frames_.low < frames_.high - frames_.low) {
      return in_arguments_ ? stays_with::these_frames : stays_with::nothing;
    }
    if (word - frames_.older < frames_.older_end - frames_.older) return stays_with::nothing;
    // A word of the runtime: code that calls below a mark in a frame saves its frame pointer there.
    const bool has_mark_in_frame = frames_.older_end != frames_.older;
    if (has_mark_in_frame && word - frames_.high <= 4 * sizeof(std::uint64_t)) {
      return stays_with::nothing;
    }
    if (word - slots.low(slot_) < slot_high_ - slots.low(slot_)) {
      // An address of younger frames means nothing: frames have no addresses of younger ones, so a
      // call that has returned has left the word.
      return word < frames_.low ? stays_with::nothing : stays_with::older_frames;
    }
    // Nothing lies in a guard page, or in a slot that no fiber uses: a word that points there is
    // the end of a stack, or a number.
    if (slots.is_guard(word) || slots[slots.index_of(word)].users == 0) return stays_with::nothing;
    return stays_with::another_stack;
  }

  bool is_private(std::uint64_t word) {
    if (lies_in_shadow(word, private_.user_end)) return false;
    if (++asked_ <= asked_one_by_one) return is_mapped(word);
    if (mappings_.empty()) mappings_ = mappings_now();
    auto after = std::upper_bound(mappings_.begin(), mappings_.end(), word,
                                  [](std::uint64_t w, const mapping& m) { return w < m.low; });
    return after != mappings_.begin() && word < std::prev(after)->high;
  }

  const leaving_frames& frames_;
  const std::uint32_t slot_;
  const std::uint64_t slot_high_;
  const private_memory private_;
  bool in_arguments_ = false;
  int asked_ = 0;
  std::vector<mapping> mappings_;
  word_that_stays found_;
};

}  // namespace

bool is_mapped(std::uint64_t address) {
  unsigned char present;
  // Counts every answer as mapped, except the one that nothing is mapped there.
  return mincore(reinterpret_cast<void*>(address & ~(page_bytes() - 1)), 1, &present) == 0 ||
         errno != ENOMEM;
}

word_that_stays find_word_that_stays(const leaving_frames& frames) { return look(frames).run(); }

}  // namespace sojourn::detail
