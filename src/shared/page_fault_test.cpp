// SPDX-License-Identifier: Apache-2.0
#include "shared/page_fault.hpp"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unwind.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <ctime>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/check.hpp"
#include "fiber/hooks.hpp"
#include "migrate/gate.hpp"
#include "observe/backtrace.hpp"
#include "shared/page_fault_test.hpp"
#include "sojourn/errors.hpp"
#include "under_memcheck.hpp"

namespace sojourn::detail::pages {
namespace {

std::uint32_t word_at(std::size_t page, std::size_t word) {
  return static_cast<std::uint32_t>((page * 1024 + word) * 2654435761u);
}
void fill(std::size_t pages) {
  for (std::size_t p = 0; p < pages; ++p) {
    for (std::size_t w = 0; w < 1024; ++w) {
      const std::uint32_t word = word_at(p, w);
      std::memcpy(runtime(p) + 4 * w, &word, sizeof word);
    }
  }
}

char private_bytes[4 * page_bytes];

// ---- Places where a fault may be ----------------------------------------------------------------

void in_memory_functions() {
  std::memcpy(private_bytes, user() + 5, 3 * page_bytes);
  CLAIM(std::memcmp(private_bytes, runtime() + 5, 3 * page_bytes) == 0);
  std::memcpy(user(8) + 77, user(1) + 3, 3 * page_bytes + 200);
  CLAIM(std::memcmp(runtime(8) + 77, runtime(1) + 3, 3 * page_bytes + 200) == 0);
  std::memmove(user(16) + 64, user(16), 2 * page_bytes);
  const std::uint32_t moved = word_at(16, 0);
  CLAIM(std::memcmp(runtime(16) + 64, &moved, sizeof moved) == 0);
}

void in_atomics() {
  auto* word = reinterpret_cast<std::uint64_t*>(user(100));
  CLAIM(__atomic_fetch_add(word, 5, __ATOMIC_SEQ_CST) == 0);
  std::uint64_t expected = 5;
  CLAIM(__atomic_compare_exchange_n(word, &expected, 9, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  CLAIM(*reinterpret_cast<std::uint64_t*>(runtime(100)) == 9);
  auto* other = reinterpret_cast<std::uint64_t*>(user(101));
  expected = 1;
  CLAIM(
      !__atomic_compare_exchange_n(other, &expected, 2, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
#if defined(__x86_64__)
  CLAIM(rank.open[101] == access::store);  // the exchange fails, and asks for a store all the same
#endif
}

[[gnu::noinline]] int deep(int n, volatile char* last) {
  char local[600];
  std::memset(local, n, sizeof local);
  asm volatile("" : : "r"(local) : "memory");
  const int below = n == 0 ? static_cast<unsigned char>(last[0]) : deep(n - 1, last);
  return below + local[n % 600] - static_cast<char>(n);
}
void below_200_frames() {
  runtime(110)[0] = 42;
  CLAIM(deep(200, user(110)) == 42);
}

void in_library_functions() {
  std::memset(runtime(120), 'x', 2 * page_bytes);
  runtime(121)[page_bytes - 1] = 0;
  CLAIM(std::strlen(user(120)) == 2 * page_bytes - 1);
  std::memset(runtime(131), 'y', 10);
  char out[64];
  std::snprintf(out, sizeof out, "%.10s", user(131) - 5);
  CLAIM(std::string(out).empty());  // the page before it is zero
  std::snprintf(out, sizeof out, "%.10s", user(131));
  CLAIM(std::string(out) == "yyyyyyyyyy");
  auto* numbers = reinterpret_cast<std::uint32_t*>(user(0));
  std::vector<std::uint32_t> sorted(numbers, numbers + 4096);
  std::sort(sorted.begin(), sorted.end());
  std::qsort(numbers, 4096, 4, [](const void* a, const void* b) {
    return *static_cast<const std::uint32_t*>(a) < *static_cast<const std::uint32_t*>(b) ? -1 : 1;
  });
  CLAIM(std::equal(sorted.begin(), sorted.end(), numbers));
  // Written in the vDSO; without one, as under qemu-user, it is a system call, which would fail.
  if (getauxval(AT_SYSINFO_EHDR) == 0) return;
  auto* time = reinterpret_cast<timespec*>(user(123) + 4088);  // on two pages
  CLAIM(clock_gettime(CLOCK_MONOTONIC, time) == 0 && time->tv_nsec < 1'000'000'000);
}

void while_an_exception_unwinds() {
  struct guard {
    ~guard() { *user(130) = 7; }
  };
  bool caught = false;
  try {
    const guard g;
    throw 42;
  } catch (int value) {
    caught = value == 42 && *static_cast<volatile char*>(user(132)) == 0;
  }
  CLAIM(caught && *runtime(130) == 7);
}

void in_a_signal_handler_on_the_stack_of_the_fiber() {
  struct sigaction action{};
  action.sa_handler = [](int) { *user(140) = 3; };
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  CLAIM(*runtime(140) == 3);
}

void with_errno() {
  errno = 71;
  (void)*static_cast<volatile char*>(user(150));
  CLAIM(errno == 71);
}

void with_floating_point() {
  volatile double one = 1, three = 3;
  const double quotient = one / three;
  runtime(151)[0] = 2;
  const double sum = quotient + *static_cast<volatile char*>(user(151));
  CLAIM(std::fabs(sum - 2.3333333) < 1e-6);
}

#if defined(__x86_64__)

// All general registers, the flags and the red zone hold values that a load and a store must leave
// alone.
asm(R"(
.text
sojourn_test_all_registers:
  pushq %rbx; pushq %rbp; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq $0x101, %rax; movq $0x102, %rbx; movq $0x103, %rcx; movq $0x104, %rdx; movq $0x105, %rbp
  movq $0x108, %r8; movq $0x109, %r9; movq $0x10a, %r10; movq $0x10b, %r11
  movq $0x10c, %r12; movq $0x10d, %r13; movq $0x10e, %r14; movq $0x10f, %r15
  movq $0x777, -8(%rsp); movq $0x778, -120(%rsp); movq $0x779, -128(%rsp)
  stc
  movq (%rdi), %rax
  movq %rax, 4096(%rdi)
  jnc 9f
  xorq (%rdi), %rax; jnz 9f
  cmpq $0x102, %rbx; jne 9f
  cmpq $0x103, %rcx; jne 9f
  cmpq $0x104, %rdx; jne 9f
  cmpq $0x105, %rbp; jne 9f
  cmpq $0x108, %r8; jne 9f
  cmpq $0x109, %r9; jne 9f
  cmpq $0x10a, %r10; jne 9f
  cmpq $0x10b, %r11; jne 9f
  cmpq $0x10c, %r12; jne 9f
  cmpq $0x10d, %r13; jne 9f
  cmpq $0x10e, %r14; jne 9f
  cmpq $0x10f, %r15; jne 9f
  cmpq $0x777, -8(%rsp); jne 9f
  cmpq $0x778, -120(%rsp); jne 9f
  cmpq $0x779, -128(%rsp); jne 9f
  movl $1, %eax
8:
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbp; popq %rbx
  ret
9: xorl %eax, %eax
  jmp 8b
)");
extern "C" int sojourn_test_all_registers(void* at);

void with_all_registers_in_use() { CLAIM(sojourn_test_all_registers(user(0)) == 1); }

void in_rep_movsb() {
  char* from = user() + 10;
  char* to = user(20) + 4000;
  std::size_t n = 2 * page_bytes;
  asm volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(n) : : "memory");
  CLAIM(std::memcmp(runtime(20) + 4000, runtime() + 10, 2 * page_bytes) == 0);
  // Backwards: the direction flag is set when the fault comes.
  from = user(4) - 1;
  to = user(26) - 1;
  n = 2 * page_bytes;
  asm volatile("std\n rep movsb\n cld" : "+S"(from), "+D"(to), "+c"(n) : : "memory");
  CLAIM(std::memcmp(runtime(24), runtime(2), 2 * page_bytes) == 0);
}

[[gnu::target("avx2")]] void in_avx2() {
  __m256i mine = _mm256_set1_epi32(1234567);
  asm volatile("" : "+x"(mine));
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(user(1) - 16));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(user(31) - 8), v);
  CLAIM(std::memcmp(runtime(31) - 8, runtime(1) - 16, 32) == 0);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(private_bytes), mine);
  int first;
  std::memcpy(&first, private_bytes, sizeof first);
  CLAIM(first == 1234567);
  // A gather: one instruction, eight absent pages.
  const __m256i index = _mm256_setr_epi32(0, 1025, 2050, 3075, 4100, 5125, 6150, 7175);
  const __m256i got = _mm256_i32gather_epi32(reinterpret_cast<const int*>(user(36)), index, 4);
  std::uint32_t words[8];
  std::memcpy(words, &got, sizeof words);
  for (std::size_t i = 0; i < 8; ++i) CLAIM(words[i] == word_at(36 + i, i));
}

[[gnu::target("avx512f,avx512bw,avx512vl")]] void in_avx512() {
  __m512i kept = _mm512_set1_epi32(424242);
  asm volatile("" : "+v"(kept));
  __mmask64 mask = 0x0f0f'0f0f'0f0f'0f0full;
  asm volatile("" : "+Yk"(mask));
  const __m512i v = _mm512_loadu_si512(user(2) - 32);
  _mm512_storeu_si512(user(33) - 32, v);
  CLAIM(std::memcmp(runtime(33) - 32, runtime(2) - 32, 64) == 0);
  _mm512_mask_storeu_epi8(user(35) - 32, mask, kept);
  CLAIM(*(runtime(35) - 32) == static_cast<char>(424242));
  const std::uint32_t beside = word_at(34, 1024 - 7);
  CLAIM(std::memcmp(runtime(35) - 28, &beside, sizeof beside) == 0);
  alignas(64) int where[16];
  for (int i = 0; i < 16; ++i) where[i] = i * 1024 + i;
  const __m512i index = _mm512_load_si512(where);
  const __m512i got = _mm512_mask_i32gather_epi32(kept, 0xffff, index, user(36), 4);
  alignas(64) std::uint32_t words[16];
  _mm512_store_si512(words, got);
  for (std::size_t i = 0; i < 16; ++i) CLAIM(words[i] == word_at(36 + i, i));
  _mm512_i32scatter_epi32(user(60), index, kept, 4);
  for (std::size_t i = 0; i < 16; ++i) {
    const int stored = 424242;
    CLAIM(std::memcmp(runtime(60 + i) + 4 * i, &stored, sizeof stored) == 0);
  }
  alignas(64) int after[16];
  _mm512_store_si512(after, kept);
  CLAIM(after[0] == 424242 && after[15] == 424242);
  CLAIM(mask == 0x0f0f'0f0f'0f0f'0f0full);
}

void with_odd_modes() {
  const unsigned mode = 0x7f80, usual = 0x1f80;  // rounds towards zero
  const unsigned short control = 0x0f7f;
  unsigned after = 0;
  unsigned short control_after = 0;
  long double deep_in_x87 = 0;
  asm volatile(
      "ldmxcsr %3\n fldcw %4\n fld1\n fldpi\n movb (%5), %%al\n fstpt %2\n fstp %%st(0)\n"
      "stmxcsr %0\n fnstcw %1"
      : "=m"(after), "=m"(control_after), "=m"(deep_in_x87)
      : "m"(mode), "m"(control), "r"(user(141))
      : "rax", "memory", "st", "st(1)", "st(2)");
  asm volatile("ldmxcsr %0\n fninit" : : "m"(usual));
  CLAIM((after & 0xffc0) == mode && control_after == control);
  CLAIM(deep_in_x87 > 3.14L && deep_in_x87 < 3.15L);
}

#elif defined(__aarch64__)

asm(R"(
.text
sojourn_test_all_registers:
  stp x29, x30, [sp, #-112]!
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  str d8, [sp, #96]
  mov x1, #1
  mov x2, #2
  mov x9, #9
  mov x15, #15
  mov x16, #16
  mov x17, #17
  mov x19, #19
  mov x28, #28
  mov x29, #29
  mov x30, #30
  fmov v0.2d, #1.0
  fmov v17.2d, #2.0
  cmp x1, x1
  ldr x3, [x0]
  str x3, [x0, #4096]
  b.ne 9f
  ccmp x1, #1, #0, eq
  ccmp x2, #2, #0, eq
  ccmp x9, #9, #0, eq
  ccmp x15, #15, #0, eq
  ccmp x16, #16, #0, eq
  ccmp x17, #17, #0, eq
  ccmp x19, #19, #0, eq
  ccmp x28, #28, #0, eq
  ccmp x29, #29, #0, eq
  ccmp x30, #30, #0, eq
  b.ne 9f
  fmov d1, #1.0
  fcmp d0, d1
  b.ne 9f
  mov d2, v17.d[1]
  fadd d1, d1, d1
  fcmp d2, d1
9:
  cset w0, eq
  ldr d8, [sp, #96]
  ldp x27, x28, [sp, #80]
  ldp x25, x26, [sp, #64]
  ldp x23, x24, [sp, #48]
  ldp x21, x22, [sp, #32]
  ldp x19, x20, [sp, #16]
  ldp x29, x30, [sp], #112
  ret
)");
extern "C" int sojourn_test_all_registers(void* at);

void with_all_registers_in_use() { CLAIM(sojourn_test_all_registers(user(0)) == 1); }

#endif

struct place {
  const char* name;
  void (*body)();
  bool is_possible = true;
};
void PrintTo(const place& p, std::ostream* to) { *to << p.name; }

std::vector<place> places() {
  return {
      {"memory_functions", in_memory_functions},
      {"atomics", in_atomics},
      {"below_200_frames", below_200_frames},
      {"library_functions", in_library_functions},
      {"while_an_exception_unwinds", while_an_exception_unwinds},
      {"signal_handler_on_the_stack_of_the_fiber", in_a_signal_handler_on_the_stack_of_the_fiber},
      {"errno", with_errno},
      {"floating_point", with_floating_point},
      {"all_registers_in_use", with_all_registers_in_use},
#if defined(__x86_64__)
      {"rep_movsb", in_rep_movsb},
      {"avx2", in_avx2, __builtin_cpu_supports("avx2") != 0},
      {"avx512", in_avx512, __builtin_cpu_supports("avx512bw") != 0},
      {"odd_modes", with_odd_modes},
#endif
  };
}

// ---- In each place, with each protection, on each way -------------------------------------------

using fault_case = std::tuple<const char*, const char*, place>;

/// Ends a process of its own.
void run_in(const char* protection, const char* way, void (*test)()) {
  try {
    begin_faults(protection, way);
  } catch (const error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    _exit(3);
  }
  test();
  _exit(0);
}
/// Not under memcheck, which reports each access to a closed page.
bool works_here(const char* protection, const char* way) {
  if (under_memcheck()) return false;
  const pid_t child = fork();
  if (child == 0) run_in(protection, way, [] {});
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

void (*body_of_place)();
void in_place() {
  fill(64);
  rank.between = destroy_registers;
  run(body_of_place);
  CLAIM(rank.faults != 0);
}

class page_faults_DeathTest : public testing::TestWithParam<fault_case> {};

TEST_P(page_faults_DeathTest, leave_everything_as_it_was) {
  const auto& [protection, way, place] = GetParam();
  if (!place.is_possible) GTEST_SKIP() << "this processor has no " << place.name;
  if (!works_here(protection, way)) GTEST_SKIP() << protection << " or " << way << " is not here";
  body_of_place = place.body;
  EXPECT_EXIT(run_in(protection, way, in_place), testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(all, page_faults_DeathTest,
                         testing::Combine(testing::Values("mprotect", "userfaultfd"),
                                          testing::Values("push", "take"),
                                          testing::ValuesIn(places())),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param)) + "_" +
                                  std::get<1>(each.param) + "_" + std::get<2>(each.param).name;
                         });

// ---- What the runtime sees ----------------------------------------------------------------------

class page_fault_DeathTest : public testing::TestWithParam<const char*> {
 protected:
  static void expect(void (*test)()) {
    if (!works_here("mprotect", GetParam())) GTEST_SKIP() << GetParam() << " is not here";
    EXPECT_EXIT(run_in("mprotect", GetParam(), test), testing::ExitedWithCode(0), "");
  }
};
INSTANTIATE_TEST_SUITE_P(both, page_fault_DeathTest, testing::Values("push", "take"),
                         [](const auto& each) { return std::string(each.param); });

std::uint64_t frames[64];
std::size_t frame_count;

// Its first instruction faults: an unwinder that took the address for one behind a call would look
// for the function that comes before.
#if defined(__x86_64__)
#define SOJOURN_TEST_LOAD "movsbl (%rdi), %eax\n ret\n"
#elif defined(__aarch64__)
#define SOJOURN_TEST_LOAD "ldrb w0, [x0]\n ret\n"
#endif
asm(".text\n nop\n sojourn_test_load:\n .cfi_startproc\n" SOJOURN_TEST_LOAD ".cfi_endproc\n");
extern "C" int sojourn_test_load(const char* from);

[[gnu::noinline]] void calls_what_loads() {
  CLAIM(sojourn_test_load(user(200)) == 0);
  asm volatile("");
}
bool has_frame_of(void (*function)()) {
  const auto begin = reinterpret_cast<std::uint64_t>(function);
  return std::any_of(frames, frames + frame_count,
                     [begin](std::uint64_t f) { return f - begin < 128; });
}
void claim_frames() {
  CLAIM(has_frame_of(reinterpret_cast<void (*)()>(sojourn_test_load)));
  CLAIM(has_frame_of(calls_what_loads));
}

void walked_while_it_runs() {
  rank.in_fault = [] {
    frame_count = 0;
    _Unwind_Backtrace(
        [](_Unwind_Context* context, void*) {
          if (frame_count < std::size(frames)) frames[frame_count++] = _Unwind_GetIP(context);
          return _URC_NO_REASON;
        },
        nullptr);
  };
  run(calls_what_loads);
  claim_frames();
}

void walked_while_it_waits() {
  run_handler([](void*) { calls_what_loads(); }, nullptr, true, nullptr);
  CLAIM(rank.waits != nullptr);
  frame_count = walk_suspended(rank.waits, frames, std::size(frames));
  claim_frames();
}

TEST_P(page_fault_DeathTest, a_backtrace_reaches_what_faulted_and_its_caller) {
  expect(walked_while_it_runs);
}
TEST_P(page_fault_DeathTest, so_does_a_backtrace_of_a_fiber_that_waits) {
  expect(walked_while_it_waits);
}

/// The compiler may have moved the load in between the steps that open a mark.
void with_a_mark_half_open() {
  rank.in_fault = [] {
    CLAIM(running.youngest == nullptr && !may_have_forks());
    CLAIM(reason_running_stays() != nullptr);
  };
  run([] {
    auto* const nowhere = reinterpret_cast<mark*>(std::uintptr_t{64});
    hold* const holds = running.holds;
    running.youngest = nowhere;
    ++counts.forks;
    const bool had_forks = may_have_forks();
    (void)*static_cast<volatile char*>(user(210));
    CLAIM(running.youngest == nowhere && may_have_forks() == had_forks);
    CLAIM(running.holds == holds);
    running.youngest = nullptr;
  });
  CLAIM(rank.faults == 1);
}
void asked_to_leave() {
  run_handler([](void*) { calls_what_loads(); }, nullptr, false, nullptr);
  CLAIM(rank.waits != nullptr);
  const stay_reason* why = reason_whole_stays(rank.waits);
  CLAIM(why != nullptr && why->kind == thread_refusal::stays);
}

TEST_P(page_fault_DeathTest, a_piece_that_waits_is_not_cut_at_a_mark) {
  expect(with_a_mark_half_open);
}
TEST_P(page_fault_DeathTest, a_piece_that_waits_does_not_leave_its_rank) { expect(asked_to_leave); }

/// Two fibers are in the middle of a fault at a time, and their faults end in either order.
void several_wait() {
  static std::vector<piece*> waiting;
  static int done;
  rank.in_fault = nullptr;
  const auto begin = [] {
    run_handler(
        [](void*) {
          static std::size_t next = 300;
          const std::size_t mine = next++;
          user(mine)[5] = static_cast<char>(mine);
          CLAIM(runtime(mine)[5] == static_cast<char>(mine));
          ++done;
        },
        nullptr, true, nullptr);
    open_page();
    waiting.push_back(std::exchange(rank.waits, nullptr));
  };
  for (int i = 0; i < 20; ++i) begin();
  for (std::size_t i = 0; i < 10; ++i) {
    make_ready(waiting[i], resumed::anywhere);
    make_ready(waiting[19 - i], resumed::anywhere);
    run_ready(2);
  }
  CLAIM(done == 20);
}
TEST_P(page_fault_DeathTest, several_fibers_wait_at_a_time) { expect(several_wait); }

// ---- Where nothing can wait ---------------------------------------------------------------------

class refused_page_fault_DeathTest : public testing::Test {
 protected:
  static void expect(void (*test)(), const char* sentence) {
    if (!works_here("mprotect", "")) GTEST_SKIP() << "no faults here";
    EXPECT_DEATH(run_in("mprotect", "", test), sentence);
  }
};

[[gnu::noinline]] char load(std::size_t page) { return *static_cast<volatile char*>(user(page)); }

[[gnu::noinline]] char load_with_little_stack() {
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  const piece* p = running_piece();
  const std::size_t room = here - slots.low(p->slot) - stack_slots::guard_bytes - 2500;
  auto* skipped = static_cast<volatile char*>(__builtin_alloca(room));
  skipped[0] = 1;
  const char loaded = load(210);
  // After the load, so that the frame with the room is not left for it by a jump.
  return static_cast<char>(loaded + skipped[0]);
}

TEST_F(refused_page_fault_DeathTest, a_stack_that_is_nearly_full_is_told) {
  expect([] { run([] { load_with_little_stack(); }); },
         "stack overflow: an access to shared memory waits on the stack of its fiber, where it "
         "needs [0-9]* KiB, and [0-9] KiB of 256 are left; use less of it .*--stack-fiber");
}
TEST_F(refused_page_fault_DeathTest, the_runtime_itself_is_told) {
  expect([] { load(210); }, "the runtime itself accessed a page of shared memory");
}
TEST_F(refused_page_fault_DeathTest, a_handler_that_promised_not_to_wait_is_told) {
  expect(
      [] {
        on_fiber.waits_outside = [] { die("`f` promised not to wait"); };
        load(210);
      },
      "`f` promised not to wait");
}
TEST_F(refused_page_fault_DeathTest, the_signal_stack_is_told) {
  expect(
      [] {
        run([] {
          struct sigaction action{};
          action.sa_handler = [](int) { load(140); };
          action.sa_flags = SA_ONSTACK;
          sigaction(SIGUSR1, &action, nullptr);
          raise(SIGUSR1);
        });
      },
      "a signal handler accessed shared memory");
}
TEST_F(refused_page_fault_DeathTest, another_thread_is_told) {
  expect([] { run([] { std::thread([] { load(210); }).join(); }); },
         "a thread that is not Sojourn's accessed shared memory");
}
TEST_F(refused_page_fault_DeathTest, an_address_that_was_never_allocated_is_told) {
  expect([] { run([] { load(pages_allocated); }); },
         "an access to shared memory at an address that was never allocated");
}
TEST_F(refused_page_fault_DeathTest, that_there_is_no_memory_for_a_page_is_told) {
  expect(
      [] {
        // As where the system has no page: an access to what is mapped raises SIGBUS.
        const int empty = memfd_create("empty", 0);
        for (char* page : {user(210), runtime(210)})
          CLAIM(mmap(page, page_bytes, page == user(210) ? PROT_NONE : PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_FIXED, empty, 0) != MAP_FAILED);
        run([] { load(210); });
      },
      "out of memory: the system has no page for shared memory: use less of it");
}
TEST_F(refused_page_fault_DeathTest, a_child_of_fork_is_told) {
  expect(
      [] {
        run([] {
          if (fork() == 0) load(210);
          int status = 0;
          wait(&status);
          _exit(status == 0 ? 0 : 1);
        });
      },
      "a process that was made by fork\\(\\) accessed shared memory");
}

}  // namespace
}  // namespace sojourn::detail::pages
