// SPDX-License-Identifier: Apache-2.0
#include "fiber/call_below.hpp"

#include "fiber/switch.hpp"
#include "frames/walk.hpp"

namespace sojourn::detail {

namespace {

std::uint64_t word_at(std::uint64_t address) {
  return *reinterpret_cast<const std::uint64_t*>(address);
}

}  // namespace

// Reads what switch_*.S has saved at `sp`.
code_position caller_of(const piece* p) {
  std::uint64_t sp = p->sp;
  const std::uint64_t resume = word_at(sp);
  const auto is = [resume](const char& label) {
    return resume == reinterpret_cast<std::uint64_t>(&label);
  };
#if defined(__x86_64__)
#ifndef SOJOURN_NO_CHECKED
  if (is(sojourn_resume_marked_checked[0])) {
    return {word_at(sp + 56), word_at(sp + 64) + 16, word_at(sp + 48)};
  }
#endif
  if (is(sojourn_resume_fork[0])) return {word_at(sp + 56), sp + 64, word_at(sp + 48)};
  if (is(sojourn_resume_handler[0])) return {word_at(sp + 56), sp + 96, word_at(sp + 40)};
  const std::uint64_t saved = is(sojourn_resume_marked[0]) ? word_at(sp + 8) : sp + 8;
  return {word_at(saved + 8), saved + 16, word_at(saved)};
#elif defined(__aarch64__)
  const std::uint64_t saved = is(sojourn_resume_marked[0]) ? word_at(sp + 8) : sp + 16;
  const std::uint64_t bytes = is(sojourn_resume_fork[0]) ? 160 : 16;
  return {word_at(saved + 8), saved + bytes, word_at(saved)};
#endif
}

void call_below(const piece* p, void (*fn)(void*), void* argument) {
  const code_position caller = caller_of(p);
  sojourn_call_as_if_from(&caller, fn, argument);
}

}  // namespace sojourn::detail
