// SPDX-License-Identifier: Apache-2.0
#include "shared/fault_frame.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/check.hpp"
#include "base/faults.hpp"
#include "memory/address_map.hpp"
#include "shared/pages/page.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace sojourn::detail::pages {

namespace {

way_to_stack way;

/// The way that SOJOURN_SHARED_FAULTS names; `otherwise` if it is not set.
way_to_stack chosen_way(way_to_stack otherwise) {
  const char* set = std::getenv("SOJOURN_SHARED_FAULTS");
  const std::string_view wanted = set != nullptr ? set : "";
  if (wanted.empty()) return otherwise;
  if (wanted == "push") return way_to_stack::push;
  if (wanted == "take") return way_to_stack::take;
  throw error(format("SOJOURN_SHARED_FAULTS=%s is neither push nor take", set));
}

/// Two numbers made into one.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  return (a ^ b) * 0x9e3779b97f4a7c15ull + (a >> 29);
}

}  // namespace

#if defined(__x86_64__)

extern "C" {
/// The components that XSAVE and XRSTOR in page_fault_x86_64.S save, a bit for each, and how many
/// bytes these take.
std::uint32_t sojourn_xsave_mask;
std::uint64_t sojourn_xsave_bytes;

extern const char sojourn_page_fault_pushed[];
[[noreturn]] void sojourn_page_fault_taken(const std::uint64_t* registers, const void* area);
}

namespace {

/// Bytes below the stack pointer that code may use (all but code compiled with -mno-red-zone); the
/// C library's code does.
constexpr std::size_t red_zone = 128;
constexpr std::uint64_t trap_flag = 0x100, resume_flag = 0x10000;

/// The registers that are pushed below the red zone, from the highest address down.
constexpr int registers_in_frame[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RBP,
                                      REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10,
                                      REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
constexpr std::size_t words_in_frame = 4 + std::size(registers_in_frame);

/// The layout of an XSAVE area (Intel SDM 1, 13.4), and what the kernel notes in bytes that the
/// processor leaves alone (struct _fpx_sw_bytes).
constexpr std::size_t kernels_size_at = 464 + 16, components_at = 512, header_end = 576;
constexpr std::size_t area_alignment = 64;
constexpr std::uint64_t x87_sse = 3, avx = 4;
constexpr std::size_t avx_bytes = 256;

/// Finds out which components are to be saved: all that the processor has enabled for this process,
/// except the protection keys, which belong to the thread.
void measure_xsave() {
  constexpr unsigned leaf = 0xd, osxsave = 1u << 27;
  constexpr std::uint64_t tiles = std::uint64_t{3} << 17, keys = std::uint64_t{1} << 9;
  constexpr long get_permitted = 0x1022;  // ARCH_GET_XCOMP_PERM
  unsigned a, b, c, d;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & osxsave) == 0) {
    throw error(
        "shared memory needs the instruction XSAVE, which this processor or kernel does "
        "not offer: run without shared memory, or on another machine");
  }
  __cpuid_count(leaf, 0, a, b, c, d);
  std::uint64_t mask = a;
  std::uint64_t permitted = ~tiles;
  syscall(SYS_arch_prctl, get_permitted, &permitted);
  mask &= permitted & ~keys;
  std::size_t bytes = header_end;
  for (unsigned i = 2; i < 32; ++i) {
    if ((mask >> i & 1) == 0) continue;
    __cpuid_count(leaf, i, a, b, c, d);
    bytes = std::max<std::size_t>(bytes, a + b);
  }
  sojourn_xsave_mask = static_cast<std::uint32_t>(mask);
  sojourn_xsave_bytes = (bytes + area_alignment - 1) / area_alignment * area_alignment;
}

greg_t& reg(void* context, int number) {
  return static_cast<ucontext_t*>(context)->uc_mcontext.gregs[number];
}
std::uint64_t value(const void* context, int number) {
  return static_cast<std::uint64_t>(
      static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[number]);
}

/// Pushes the words at the high end of the frame, which are the same in both ways.
std::uint64_t* push_fault(const void* context, std::uint64_t address, bool store) {
  auto* at = reinterpret_cast<std::uint64_t*>(value(context, REG_RSP) - red_zone);
  *--at = value(context, REG_RIP);
  *--at = address;
  *--at = store ? 1 : 0;
  return at;
}

[[noreturn]] void take(const void* context, std::uint64_t address, bool store) {
  std::uint64_t* at = push_fault(context, address, store);
  *--at = value(context, REG_EFL) & ~(trap_flag | resume_flag);
  for (const int number : registers_in_frame) *--at = value(context, number);
  // Components in their initial state are not copied: their bits in the header are 0.
  const auto* area =
      reinterpret_cast<const char*>(static_cast<const ucontext_t*>(context)->uc_mcontext.fpregs);
  std::uint64_t in_use;
  std::uint32_t kernels_size;
  std::memcpy(&in_use, area + components_at, sizeof in_use);
  std::memcpy(&kernels_size, area + kernels_size_at, sizeof kernels_size);
  std::size_t bytes = header_end + avx_bytes;
  // The rest of the area is copied only if such a component is in use that will be restored. (The
  // kernel always saves the protection keys, which are not restored.)
  if ((in_use & sojourn_xsave_mask & ~(x87_sse | avx)) != 0) bytes = sojourn_xsave_bytes;
  bytes = std::min<std::size_t>(bytes, kernels_size);
  auto* to = reinterpret_cast<char*>((reinterpret_cast<std::uint64_t>(at) - sojourn_xsave_bytes) &
                                     ~(area_alignment - 1));
  std::memcpy(to, area, bytes);
  sojourn_page_fault_taken(at, to);
}

void push(void* context, std::uint64_t address, bool store) {
  std::uint64_t* const at = push_fault(context, address, store);
  reg(context, REG_RSP) = reinterpret_cast<greg_t>(at);
  reg(context, REG_RIP) = reinterpret_cast<greg_t>(sojourn_page_fault_pushed);
  reg(context, REG_EFL) &= ~static_cast<greg_t>(trap_flag);
}

/// Whether the handler of a fault finds in a register the value that the program wrote there last.
/// Valgrind does not store a value that the program will overwrite anyway, unless it is told to.
bool faults_have_registers() {
  static bool found;
  constexpr std::uint64_t written = 0x736f6a6f75726e21;
  void* const page = mmap(nullptr, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return true;
  const auto at = reinterpret_cast<std::uint64_t>(page);
  const fault_handler look = [](const page_fault& fault, void*) {
    found = value(fault.context, REG_R10) == written;
    return mprotect(reinterpret_cast<void*>(fault.address), page_bytes, PROT_READ) == 0;
  };
  found = true;
  if (add_fault_range(at, at + page_bytes, look, nullptr)) {
    asm volatile("mov %[written], %%r10\n\tmov (%[page]), %%rax\n\txor %%r10d, %%r10d"
                 :
                 : [written] "r"(written), [page] "r"(page)
                 : "rax", "r10", "memory", "cc");
    remove_fault_range(at);
  }
  munmap(page, page_bytes);
  return found;
}

}  // namespace

void prepare_fault_frames() {
  // The frames of signals that valgrind makes hold no vector registers wider than 128 bits.
  way = chosen_way(under_valgrind() ? way_to_stack::push : way_to_stack::take);
  measure_xsave();
}

void require_registers_of_faults() {
  if (!under_valgrind() || faults_have_registers()) return;
  throw error(
      "shared memory under valgrind needs --vex-iropt-register-updates=allregs-at-mem-access, "
      "without which accesses to it find wrong values in registers: add it to valgrind's "
      "arguments");
}

std::uint64_t interrupted_registers(const void* context) {
  std::uint64_t all = mixed(value(context, REG_RIP), value(context, REG_RSP));
  for (const int number : registers_in_frame) all = mixed(all, value(context, number));
  return all;
}

std::size_t fault_frame_bytes(const void*) {
  return red_zone + words_in_frame * 8 + sojourn_xsave_bytes + area_alignment;
}

void call_on_interrupted_stack(void* context, std::uint64_t address, bool store) {
  if (way == way_to_stack::take) take(context, address, store);
  push(context, address, store);
}

#elif defined(__aarch64__)

extern "C" const char sojourn_page_fault_return[];

namespace {

/// What the kernel has saved for a signal handler: siginfo, then the context, whose records of
/// vector registers may go on behind it.
constexpr std::size_t info_bytes = 128;
static_assert(sizeof(siginfo_t) == info_bytes);

const extra_context* find_extra(const ucontext_t& c) {
  const unsigned char* at = c.uc_mcontext.__reserved;
  for (_aarch64_ctx head;; at += head.size) {
    std::memcpy(&head, at, sizeof head);
    if (head.magic == 0 || head.size == 0) return nullptr;
    if (head.magic == EXTRA_MAGIC) return reinterpret_cast<const extra_context*>(at);
  }
}

/// The bytes of the context, and of the records behind it that `extra` names.
std::size_t context_bytes(const ucontext_t& c, const extra_context* extra) {
  if (extra == nullptr) return sizeof c;
  return std::max<std::size_t>(sizeof c,
                               extra->datap + extra->size - reinterpret_cast<std::uint64_t>(&c));
}

}  // namespace

void prepare_fault_frames() {
  // Only the kernel can restore all registers at once, so there is one way.
  way = chosen_way(way_to_stack::push);
  if (way != way_to_stack::push) {
    throw error("SOJOURN_SHARED_FAULTS=take works on x86-64 only: leave the variable out");
  }
}

void require_registers_of_faults() {}  // the kernel's are complete

std::uint64_t interrupted_registers(const void* context) {
  const auto& now = static_cast<const ucontext_t*>(context)->uc_mcontext;
  std::uint64_t all = mixed(now.pc, now.sp);
  for (const std::uint64_t r : now.regs) all = mixed(all, r);
  return all;
}

std::size_t fault_frame_bytes(const void* context) {
  const auto& c = *static_cast<const ucontext_t*>(context);
  return info_bytes + context_bytes(c, find_extra(c)) + 16;
}

void call_on_interrupted_stack(void* context, std::uint64_t address, bool store) {
  auto& now = *static_cast<ucontext_t*>(context);
  const extra_context* const extra = find_extra(now);
  const auto begin = reinterpret_cast<std::uint64_t>(context);
  const std::size_t bytes = context_bytes(now, extra);
  // Copies the frame of the signal handler to the interrupted stack.
  const std::uint64_t to = (now.uc_mcontext.sp - info_bytes - bytes) & ~std::uint64_t{15};
  std::memcpy(reinterpret_cast<void*>(to + info_bytes), context, bytes);
  if (extra != nullptr) {
    const std::uint64_t offset = reinterpret_cast<std::uint64_t>(extra) - begin;
    reinterpret_cast<extra_context*>(to + info_bytes + offset)->datap =
        extra->datap - begin + to + info_bytes;
  }
  now.uc_mcontext.sp = to;
  now.uc_mcontext.pc = reinterpret_cast<std::uint64_t>(sojourn_page_fault);
  now.uc_mcontext.regs[30] = reinterpret_cast<std::uint64_t>(sojourn_page_fault_return);
  now.uc_mcontext.regs[0] = address;
  now.uc_mcontext.regs[1] = store ? 1 : 0;
}

#endif

}  // namespace sojourn::detail::pages
