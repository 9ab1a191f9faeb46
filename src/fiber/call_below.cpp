// SPDX-License-Identifier: Apache-2.0
#include "fiber/call_below.hpp"

#include "fiber/switch.hpp"

namespace sojourn::detail {

namespace {

std::uint64_t word_at(std::uint64_t address) {
  return *reinterpret_cast<const std::uint64_t*>(address);
}

}  // namespace

// From what switch_*.S has saved at `sp`.
call_context caller_of(const piece* p) {
  std::uint64_t sp = p->sp;
  bool at_mark = word_at(sp) == reinterpret_cast<std::uint64_t>(&sojourn_resume_marked);
#if defined(__x86_64__)
  std::uint64_t saved = at_mark ? word_at(sp + 8) : sp + 8;
#elif defined(__aarch64__)
  std::uint64_t saved = at_mark ? word_at(sp + 8) : sp + 16;
#endif
  return {word_at(saved + 8), saved + 16, word_at(saved)};
}

void call_below(const piece* p, void (*fn)(void*), void* argument) {
  call_context caller = caller_of(p);
  sojourn_call_as_if_from(&caller, fn, argument);
}

}  // namespace sojourn::detail
