// SPDX-License-Identifier: Apache-2.0
#include "migrate/scan/stale_report.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/checked.hpp"
#include "fiber/switch.hpp"
#include "frames/code_owner.hpp"
#include "frames/debug_info.hpp"
#include "frames/function_name.hpp"
#include "frames/stack_frames.hpp"
#include "frames/symbols.hpp"
#include "migrate/scan/clear_stack.hpp"
#include "migrate/scan/word_holder.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {

namespace {

// Each investigation takes microseconds. A program that keeps sending new suspect words has been
// looked at often enough after so many.
constexpr int investigations_max = 2000;

bool are_unknown_distrusted = false;

// glibc keeps freed blocks of up to this size at hand (malloc.c, tcache), and marks them by a key
// in their second word, which is random in each process.
constexpr std::uint64_t kept_at_hand_max = 1040;
std::uint64_t key_of_freed() {
  static const std::uint64_t key = [] {
    auto* freed = static_cast<volatile std::uint64_t*>(std::malloc(1000));
    if (freed == nullptr) return std::uint64_t{0};
    auto where = reinterpret_cast<std::uint64_t>(freed);
    std::free(const_cast<std::uint64_t*>(freed));
    asm volatile("" : "+r"(where));  // read although it is freed
    return reinterpret_cast<volatile std::uint64_t*>(where)[1];
  }();
  return key;
}

bool read_own_memory(std::uint64_t address, void* to, std::size_t bytes) {
  iovec local{to, bytes};
  iovec remote{reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

// When the C library has a few freed objects of one size, it puts further ones, of up to this size,
// in lists ("fast bins"). Such an object looks like an allocated one, except for its first word:
// the address of the next object of the list, disguised with the word's own address.
constexpr std::uint64_t in_fast_list_max = 128;
bool is_in_fast_list(std::uint64_t address, std::uint64_t bytes) {
  std::uint64_t first;
  if (bytes > in_fast_list_max || !read_own_memory(address, &first, sizeof first)) return false;
  const std::uint64_t next = first ^ address >> 12;
  if (next == 0) return true;
  std::uint64_t size_of_next;
  return next % 16 == 0 && read_own_memory(next + 8, &size_of_next, sizeof size_of_next) &&
         (size_of_next & ~std::uint64_t{7}) == bytes;
}

/// True for an image of frames, which the runtime keeps in the C library's heap. An image begins
/// with the address at which the frames are resumed.
bool is_image_of_frames(std::uint64_t address) {
  std::uint64_t first;
  const auto low = reinterpret_cast<std::uint64_t>(sojourn_switch);
  const auto high = reinterpret_cast<std::uint64_t>(sojourn_switch_end);
  return read_own_memory(address, &first, sizeof first) && first - low < high - low;
}

}  // namespace

/// Judges by the sizes and flags that the allocator keeps before each object. Freed objects and
/// other memory mostly do not have the right ones.
bool is_allocated_object(std::uint64_t address) {
  constexpr std::uint64_t flags = 7;
  constexpr std::uint64_t previous_in_use = 1;
  constexpr std::uint64_t mapped_alone = 2;
  std::uint64_t size;
  if (address % 16 != 0 || !read_own_memory(address - 8, &size, sizeof size)) return false;
  std::uint64_t bytes = size & ~flags;
  if (bytes < 32 || bytes % 16 != 0 || bytes > std::uint64_t{1} << 40) return false;
  if (size & mapped_alone) return bytes % 4096 == 0 && (address - 16) % 4096 == 0;
  // A freed object that the C library keeps at hand for this thread differs from an allocated one
  // only by the key.
  std::uint64_t second;
  if (bytes <= kept_at_hand_max && read_own_memory(address + 8, &second, sizeof second) &&
      second != 0 && second == key_of_freed()) {
    return false;
  }
  if (is_in_fast_list(address, bytes) || is_image_of_frames(address)) return false;
  std::uint64_t next;
  return read_own_memory(address - 8 + bytes, &next, sizeof next) && (next & previous_in_use) != 0;
}

namespace {

/// The frame of the activation's own function: the oldest that is the program's.
const frame* activation_in(const std::vector<frame>& frames) {
  for (auto f = frames.rbegin(); f != frames.rend(); ++f) {
    if (owner_of_code(f->code) == code_owner::program) return &*f;
  }
  return nullptr;
}

/// Warns of an argument that points into the frames of the activation's callers.
void tell_of_argument(const frame& of, std::uint64_t word) {
  static std::set<std::string> named;
  const std::string function = symbolise(of.code);
  if (!named.insert(function).second) return;
  std::fprintf(
      stderr,
      "sojourn: rank %d: warning: an argument of `%s` migrates with a word (0x%llx) that looks "
      "like a pointer into the frames of its callers, which stay; on another rank it points "
      "nowhere. Pass the data by value, or keep it in the global heap (see docs/migration.md; "
      "SOJOURN_SCAN=off silences this)\n",
      job.me, function.c_str(), static_cast<unsigned long long>(word));
}

/// "`values` (0x7f7b040127e0), a pointer into": as far as debug information tells.
std::string described(const word_holder& holder, std::uint64_t word) {
  const auto value = static_cast<unsigned long long>(word);
  switch (holder.what) {
    case word_holder::kind::variable:
      return format("%s (0x%llx), a pointer into", described_variable(holder.variable).c_str(),
                    value);
    case word_holder::kind::unnamed:
      return format(
          "a word in a register (0x%llx), which no variable is known to hold, that looks "
          "like a pointer into",
          value);
    default:
      return format("a word (0x%llx) that looks like a pointer into", value);
  }
}

/// Warns, once per function, of a word that points into the private heap. Returns false when nobody
/// holds the word.
bool tell_of_frame(const word_holder& holder, std::uint64_t word, leaves_for where) {
  if (holder.what == word_holder::kind::nobody) return false;
  if (holder.what == word_holder::kind::unknown && are_unknown_distrusted) return false;
  static std::set<std::string> named;
  const std::string function = symbolise(holder.in->code);
  if (!named.insert(function).second) return true;
  const char* may_be_dead =
      holder.what == word_holder::kind::unknown
          ? "; where its debugging information can be read (-g, neither split nor in a program "
            "that "
            "is linked statically), a program is warned only of words that a variable holds"
          : "";
  if (where == leaves_for::a_checkpoint) {
    std::fprintf(
        stderr,
        "sojourn: rank %d: warning: a frame of `%s` is saved with %s this rank's private heap, "
        "which is not saved; in a restored job it points nowhere. Keep the data on thread_heap() "
        "or in the global heap%s (see docs/checkpoint.md; SOJOURN_SCAN=off silences this)\n",
        job.me, function.c_str(), described(holder, word).c_str(), may_be_dead);
  } else {
    std::fprintf(
        stderr,
        "sojourn: rank %d: warning: a frame of `%s` migrates with %s this rank's private heap; on "
        "another rank it points nowhere. Pass the data by value, or keep it in the global heap%s "
        "(see docs/migration.md; SOJOURN_SCAN=off silences this)\n",
        job.me, function.c_str(), described(holder, word).c_str(), may_be_dead);
  }
  return true;
}

/// False when the word is dead, as far as this rank can tell.
bool investigate(std::uint64_t address, std::uint64_t hi, std::uint64_t word, bool older,
                 leaves_for where) {
  if (!older && !is_allocated_object(word)) return false;
  const std::vector<frame> frames = frames_below(hi, ~std::size_t{0});
  if (!older) return tell_of_frame(holder_of(frames, address, word), word, where);
  const frame* of = activation_in(frames);
  if (of == nullptr) return false;
  tell_of_argument(*of, word);
  return true;
}

}  // namespace

void distrust_frames_without_debug_info() { are_unknown_distrusted = true; }

void report_stale_pointer(std::uint64_t address, std::uint64_t hi, std::uint64_t word, bool older,
                          leaves_for where) {
  // What was found out about the last words is kept, because the same words are often in the same
  // places at the next migration.
  struct verdict {
    std::uint64_t key;
    bool is_live;
  };
  static verdict seen[256];
  static int investigations = 0;
  const std::uint64_t key = address ^ (word * 0x9e3779b97f4a7c15u);
  verdict& found = seen[key >> 8 & 255];
  if (found.key != key) {
    if (investigations == investigations_max) return;
    ++investigations;
    found = {key, investigate(address, hi, word, older, where)};
    clear_stack_below(cleared_after_walk);
  }
  if (found.is_live) ++counts.scan_warnings;
}

namespace {

bool refusals_are_told = false;

const char* described(stays_with what) {
  switch (what) {
    case stays_with::private_memory:
      return "this rank's private memory";
    case stays_with::older_frames:
      return "the frames of its callers, which stay";
    case stays_with::another_stack:
      return "the stack of another fiber";
    case stays_with::thread_heap:
      return "the heap of a thread";
    case stays_with::heap_of_host:
      return "the global heap, to which ranks of another host have no plain pointers";
    default:
      return "these frames, of a child that stays";
  }
}

}  // namespace

void attach_stale_report() {
  const char* text = std::getenv("SOJOURN_STATS");
  if (text != nullptr && std::strcmp(text, "on") != 0 && std::strcmp(text, "off") != 0) {
    throw error(format("SOJOURN_STATS=%s is neither on nor off", text));
  }
  refusals_are_told = checked() || (text != nullptr && std::strcmp(text, "on") == 0);
}

void report_refused_steal(const word_that_stays& found, std::uint64_t low, std::uint64_t hi) {
  if (!refusals_are_told) return;
  static int investigations = 0;
  if (investigations == investigations_max) return;
  ++investigations;
  const frame* of = nullptr;
  const std::vector<frame> frames = frames_between(low, hi);
  for (const frame& f : frames) {
    // The frames that called the program's function are the runtime's.
    if (owner_of_code(f.code) == code_owner::program) of = &f;
    if (of != nullptr && f.high > found.at) break;
  }
  if (of == nullptr) return;
  std::string function = function_name(of->code);
  static std::set<std::string> named;
  if (is_excused(function) || !named.insert(function).second) return;
  std::string what = described_variable("");
  if (found.at >= of->low && found.at < of->high) {
    const frame_variable variable =
        variable_at("/proc/self/exe", of->code, static_cast<std::int64_t>(found.at - of->high));
    what = described_variable(variable.name);
  }
  const bool beyond = found.at >= of->high;
  std::fprintf(
      stderr,
      "sojourn: rank %d: `%s` was not given to a rank without work: %s (0x%llx, %llu bytes "
      "%s its frame's end) looks like a pointer into %s (docs/forks.md)\n",
      job.me, function.c_str(), what.c_str(), static_cast<unsigned long long>(found.word),
      static_cast<unsigned long long>(beyond ? found.at - of->high : of->high - found.at),
      beyond ? "above" : "below", described(found.what));
}

}  // namespace sojourn::detail
