// SPDX-License-Identifier: Apache-2.0
#include "frames/stack_frames.hpp"

#include <iterator>
#include <unordered_map>

#include "frames/code_owner.hpp"
#include "frames/function_name.hpp"
#include "frames/symbols.hpp"
#include "frames/walk.hpp"
#include "memory/address_map.hpp"

namespace sojourn::detail {

namespace {

// The registers that a call preserves, by DWARF's numbers (the processors' ABI supplements).
#if defined(__x86_64__)
constexpr int saved_registers[] = {3, 6, 12, 13, 14, 15};  // rbx, rbp, r12 to r15
constexpr int frame_register = 6;
#else
constexpr int saved_registers[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29};
constexpr int frame_register = 29;
#endif
static_assert(std::size(saved_registers) <= std::size(frame{}.saved));

/// The frames from the first one that begins in [from, hi) to the one that ends at or above `hi`.
/// (Younger frames are those of the walk itself.)
[[gnu::always_inline]] inline std::vector<frame> collect(std::uint64_t from, std::uint64_t hi,
                                                         std::size_t most) {
  std::vector<frame> frames;
  walk_frames({}, [&](const walked_frame& walked) {
    if (frames.empty() && (walked.low < from || walked.low >= hi)) return true;
    if (!frames.empty()) frames.back().high = walked.low;
    // Two words lie between a mark and the frames below it (sojourn_call_marked_checked). When the
    // frames have moved, the words above, which the unwinder would read next, are not on this rank.
    if (walked.low + 16 >= hi || frames.size() == most) return false;
    frame& f = frames.emplace_back(frame{walked.code, walked.low, hi, {}});
    for (std::size_t i = 0; i < std::size(saved_registers); ++i)
      f.saved[i] = walked.value_of(saved_registers[i]);
    return true;
  });
  return frames;
}

}  // namespace

int saved_register(std::size_t i) {
  return i < std::size(saved_registers) ? saved_registers[i] : -1;
}

std::vector<frame> frames_below(std::uint64_t hi, std::size_t most) {
  return collect(0, hi, most);  // skips only frames on a signal's own stack, which lies above
}

std::vector<frame> frames_between(std::uint64_t sp, std::uint64_t hi) {
  std::vector<frame> frames = collect(sp, hi, ~std::size_t{0});
  auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  if (frames.empty() || addresses.in_stacks(here)) return frames;
  // A stack that was left has no values in registers (switch_*.S). The values that the unwinder
  // finds there are those of the walk itself.
  for (std::size_t i = 0; i < std::size(saved_registers); ++i) {
    if (saved_registers[i] != frame_register) frames.front().saved[i] = 0;
  }
  return frames;
}

namespace {

/// True for a function of the runtime that has a callable of the program inlined. Remembers its
/// answers.
bool has_callable(std::uint64_t code) {
  static std::unordered_map<std::uint64_t, bool> known;
  const auto [entry, is_new] = known.try_emplace(code, false);
  if (is_new) entry->second = !callable_in(symbolise(code)).empty();
  return entry->second;
}

}  // namespace

std::uint64_t user_code(std::uint64_t hi) {
  for (const frame& f : frames_below(hi, 48)) {
    if (owner_of_code(f.code) == code_owner::program || has_callable(f.code)) return f.code;
  }
  return 0;
}

}  // namespace sojourn::detail
