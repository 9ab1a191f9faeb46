// SPDX-License-Identifier: Apache-2.0
// For tests of faults: a process that runs fibers and opens the pages that they wait for. It checks
// its claims as region_test.hpp says.
#pragma once

#include <signal.h>
#include <sys/auxv.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "fiber/ready_queue.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/spare_stacks.hpp"
#include "memory/region_test.hpp"
#include "memory/stack_slots.hpp"
#include "shared/mapping.hpp"
#include "shared/page_fault.hpp"
#include "shared/protection.hpp"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

namespace sojourn::detail::pages {

/// A rank with shared memory.
struct fault_rank {
  std::unique_ptr<protection> by;
  std::unique_ptr<mapping> mapped;
  std::map<page_number, access> open;  ///< What pages allow that allow anything.
  std::uint64_t faults = 0;
  std::uint64_t stores = 0;
  piece* waits = nullptr;     ///< The fiber that waits for a page …
  std::uint64_t address = 0;  ///< … at this address, …
  bool store = false;         ///< … to which it stores.
  bool finished = false;
  void (*body)() = nullptr;
  void (*between)() = nullptr;   ///< Runs as a handler while the fiber waits.
  void (*in_fault)() = nullptr;  ///< Called on the fiber's stack before it waits.
};
inline fault_rank rank;

inline char* user(std::size_t page = 0) {
  return reinterpret_cast<char*>(addresses.shared + page * page_bytes);
}
inline char* runtime(std::size_t page = 0) { return user(page) + addresses.shared_bytes(); }

inline void wait_for_page(std::uint64_t address, bool store, std::uint64_t, std::uint64_t) {
#if defined(__x86_64__)
  constexpr std::uint64_t direction_flag = 0x400;
  CLAIM((__builtin_ia32_readeflags_u64() & direction_flag) == 0);  // as the ABI says
#endif
  ++rank.faults;
  rank.stores += store ? 1 : 0;
  rank.address = address;
  rank.store = store;
  if (rank.in_fault != nullptr) rank.in_fault();
  leave([](piece* left, void*) { rank.waits = left; }, nullptr);
}

inline constexpr std::size_t pages_allocated = 4096;

/// Makes this process such a rank; returns whether `protection` works here.
inline bool begin_faults(const char* protection, const char* way) {
  map_as(0, 4 * gib, 1);
  slots.attach(0, new_watch);
  char here;
  const auto sp = reinterpret_cast<std::uint64_t>(&here);
  attach_scheduler(sp - (1u << 20), sp + (1u << 20));
  const std::size_t bytes = getauxval(AT_MINSIGSTKSZ) + (64u << 10);
  stack_t stack{};
  stack.ss_sp = std::malloc(bytes);
  stack.ss_size = bytes;
  CLAIM(sigaltstack(&stack, nullptr) == 0);
  setenv("SOJOURN_SHARED_PROTECTION", protection, 1);
  setenv("SOJOURN_SHARED_FAULTS", way, 1);
  rank.by = choose_protection(protection_from_environment());
  rank.mapped = std::make_unique<mapping>(*rank.by);
  rank.mapped->grow(pages_allocated * page_bytes);
  attach_page_faults(
      {wait_for_page, [](std::uint64_t address) { return page_of(address) < pages_allocated; }});
  return true;
}

/// Opens the page that the fiber waits for.
inline void open_page() {
  const page_number page = page_of(rank.address);
  access& is = rank.open[page];
  const access wanted = rank.store || is == access::store ? access::store : access::load;
  rank.by->protect({page, 1}, is, wanted);
  is = wanted;
}

/// Runs `body` as a fiber, and opens pages as it waits for them.
inline void run(void (*body)()) {
  rank.body = body;
  rank.finished = false;
  handler_end end = run_handler(
      [](void*) {
        rank.body();
        rank.finished = true;
      },
      nullptr, true, nullptr);
  CLAIM(end == handler_end::fiber_waits || rank.finished);
  while (!rank.finished) {
    piece* const waits = std::exchange(rank.waits, nullptr);
    CLAIM(waits != nullptr);
    if (rank.between != nullptr) {
      run_handler([](void*) { rank.between(); }, nullptr, true, nullptr);
    }
    open_page();
    make_ready(waits, resumed::anywhere);
    run_ready(1);
  }
}

/// What the fiber that runs meanwhile leaves in the registers that calls may change.
inline void destroy_registers() {
  errno = 5;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw")) {
    asm volatile(
        "vpternlogd $255,%%zmm16,%%zmm16,%%zmm16\n vmovdqa64 %%zmm16,%%zmm0\n"
        "vmovdqa64 %%zmm16,%%zmm1\n vmovdqa64 %%zmm16,%%zmm2\n vmovdqa64 %%zmm16,%%zmm7\n"
        "vmovdqa64 %%zmm16,%%zmm15\n vmovdqa64 %%zmm16,%%zmm17\n vmovdqa64 %%zmm16,%%zmm20\n"
        "vmovdqa64 %%zmm16,%%zmm31\n kxnorq %%k0,%%k0,%%k0\n kxnorq %%k1,%%k1,%%k1\n"
        "kxnorq %%k2,%%k2,%%k2\n kxnorq %%k7,%%k7,%%k7\n"
        :
        :
        : "memory");
  }
  if (__builtin_cpu_supports("avx2")) {
    asm volatile(
        "vpcmpeqd %%ymm0,%%ymm0,%%ymm0\n vmovdqa %%ymm0,%%ymm1\n vmovdqa %%ymm0,%%ymm2\n"
        "vmovdqa %%ymm0,%%ymm3\n vmovdqa %%ymm0,%%ymm4\n vmovdqa %%ymm0,%%ymm5\n"
        "vmovdqa %%ymm0,%%ymm6\n vmovdqa %%ymm0,%%ymm7\n vmovdqa %%ymm0,%%ymm8\n"
        "vmovdqa %%ymm0,%%ymm9\n vmovdqa %%ymm0,%%ymm10\n vmovdqa %%ymm0,%%ymm11\n"
        "vmovdqa %%ymm0,%%ymm12\n vmovdqa %%ymm0,%%ymm13\n vmovdqa %%ymm0,%%ymm14\n"
        "vmovdqa %%ymm0,%%ymm15\n vzeroupper\n"
        :
        :
        : "memory");
  }
  asm volatile("pcmpeqd %%xmm0,%%xmm0\n movdqa %%xmm0,%%xmm6\n fninit\n fldpi\n fninit"
               :
               :
               : "memory");
#elif defined(__aarch64__)
  asm volatile(
      "movi v0.16b, #255\n movi v1.16b, #255\n movi v7.16b, #255\n movi v16.16b, #255\n"
      "movi v17.16b, #255\n movi v31.16b, #255\n mov x0, #-1\n mov x1, #-1\n mov x9, #-1\n"
      "mov x15, #-1\n mov x16, #-1\n mov x17, #-1\n cmp x0, #0\n"
      :
      :
      : "memory", "x0", "x1", "x9", "x15", "x16", "x17", "v0", "v1", "v7", "v16", "v17", "v31",
        "cc");
#endif
}

}  // namespace sojourn::detail::pages
