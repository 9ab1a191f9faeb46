// SPDX-License-Identifier: Apache-2.0
#include "frames/interrupted.hpp"

#include <ucontext.h>

namespace sojourn::detail {

namespace {

const mcontext_t& registers_of(const void* context) {
  return static_cast<const ucontext_t*>(context)->uc_mcontext;
}

}  // namespace

#if defined(__x86_64__)

code_position interrupted_at(const void* context) {
  const auto value = [&](int number) {
    return static_cast<std::uint64_t>(registers_of(context).gregs[number]);
  };
  return {value(REG_RIP), value(REG_RSP), value(REG_RBP)};
}

code_position caller_of_interrupted(const void* context) {
  const code_position called = interrupted_at(context);
  return {*reinterpret_cast<const std::uint64_t*>(called.sp), called.sp + 8, called.frame};
}

#elif defined(__aarch64__)

code_position interrupted_at(const void* context) {
  const mcontext_t& r = registers_of(context);
  return {r.pc, r.sp, r.regs[29]};
}

code_position caller_of_interrupted(const void* context) {
  const mcontext_t& r = registers_of(context);
  return {r.regs[30], r.sp, r.regs[29]};
}

#endif

}  // namespace sojourn::detail
