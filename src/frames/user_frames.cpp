// SPDX-License-Identifier: Apache-2.0
#include "frames/user_frames.hpp"

#include <unwind.h>

#include <iterator>
#include <unordered_map>

#include "base/checked.hpp"
#include "frames/symbols.hpp"
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

struct walk {
  std::vector<frame>* frames;
  std::uint64_t from;  ///< Frames visited before the first one in [from, hi) are the walker's.
  std::uint64_t hi;
  std::size_t most;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto* w = static_cast<walk*>(argument);
  // While a frame is visited, the unwinder's canonical frame address is that of its callee.
  std::uint64_t low = _Unwind_GetCFA(context);
  std::uint64_t code = _Unwind_GetIP(context);
  if (code == 0) return _URC_END_OF_STACK;
  if (w->frames->empty() && (low < w->from || low >= w->hi)) return _URC_NO_REASON;
  if (!w->frames->empty()) w->frames->back().high = low;
  // Two words lie between a mark and the frames below it (sojourn_call_marked_checked). When the
  // frames have moved, the words above, which the unwinder would read next, are not on this rank.
  if (low + 16 >= w->hi || w->frames->size() == w->most) return _URC_END_OF_STACK;
  w->frames->push_back({code - 1, low, w->hi, {}});
  for (std::size_t i = 0; i < std::size(saved_registers); ++i) {
    w->frames->back().saved[i] = _Unwind_GetGR(context, saved_registers[i]);
  }
  return _URC_NO_REASON;
}

}  // namespace

int saved_register(std::size_t i) {
  return i < std::size(saved_registers) ? saved_registers[i] : -1;
}

std::vector<frame> frames_below(std::uint64_t hi, std::size_t most) {
  std::vector<frame> frames;
  walk w{&frames, 0, hi, most};  // skips only frames on a signal's own stack, which lies above
  _Unwind_Backtrace(visit, &w);
  return frames;
}

std::vector<frame> frames_between(std::uint64_t sp, std::uint64_t hi) {
  std::vector<frame> frames;
  walk w{&frames, sp, hi, ~std::size_t{0}};
  _Unwind_Backtrace(visit, &w);
  auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  if (frames.empty() || addresses.in_stacks(here)) return frames;
  // A stack that was left has no values in registers (switch_*.S): those that the unwinder finds
  // there are the walker's.
  for (std::size_t i = 0; i < std::size(saved_registers); ++i) {
    if (saved_registers[i] != frame_register) frames.front().saved[i] = 0;
  }
  return frames;
}

namespace {

enum class whose : std::uint8_t { library, program, both };

/// `both`: the runtime's, with a callable of the program inlined.
whose whose_code(std::uint64_t code) {
  static std::unordered_map<std::uint64_t, whose> known;
  auto [entry, fresh] = known.try_emplace(code, whose::library);
  if (!fresh) return entry->second;
  const std::string symbol = symbolise(code);
  if (!is_library_function(symbol)) return entry->second = whose::program;
  return entry->second = callable_in(symbol).empty() ? whose::library : whose::both;
}

}  // namespace

bool is_users(std::uint64_t code) { return whose_code(code) == whose::program; }

std::uint64_t user_code(std::uint64_t hi) {
  for (const frame& f : frames_below(hi, 48)) {
    if (whose_code(f.code) != whose::library) return f.code;
  }
  return 0;
}

}  // namespace sojourn::detail
