// SPDX-License-Identifier: Apache-2.0
// Compares the walk with the C++ runtime's unwinder.
#include "frames/unwind_tables.hpp"

#include <gtest/gtest.h>
#include <unwind.h>

#include <cstring>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace sojourn::detail {
namespace {

struct wanted_here {};
struct wanted_there {};

const void* is_wanted(const std::type_info& type) {
  if (type == typeid(wanted_here)) return &typeid(wanted_here);
  return type == typeid(wanted_there) ? &typeid(wanted_there) : nullptr;
}
unwind_tables tables(is_wanted);

#if defined(__x86_64__)
constexpr int numbers[preserved_registers] = {3, 6, 12, 13, 14, 15};
/// The registers of the function that calls sojourn_test_snapshot.
struct snapshot {
  std::uint64_t registers[preserved_registers];
  std::uint64_t pc, sp;
};
extern "C" void sojourn_test_snapshot(snapshot* into);
asm(R"(
    .pushsection .text
    .globl sojourn_test_snapshot
    .type sojourn_test_snapshot, @function
sojourn_test_snapshot:
    .cfi_startproc
    movq %rbx, (%rdi)
    movq %rbp, 8(%rdi)
    movq %r12, 16(%rdi)
    movq %r13, 24(%rdi)
    movq %r14, 32(%rdi)
    movq %r15, 40(%rdi)
    movq (%rsp), %rax
    movq %rax, 48(%rdi)
    leaq 8(%rsp), %rax
    movq %rax, 56(%rdi)
    ret
    .cfi_endproc
    .size sojourn_test_snapshot, . - sojourn_test_snapshot
    .popsection
)");
#elif defined(__aarch64__)
constexpr int numbers[preserved_registers] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
                                              29, 72, 73, 74, 75, 76, 77, 78, 79};
struct snapshot {
  std::uint64_t registers[preserved_registers];
  std::uint64_t pc, sp;
};
extern "C" void sojourn_test_snapshot(snapshot* into);
asm(R"(
    .pushsection .text
    .globl sojourn_test_snapshot
    .type sojourn_test_snapshot, %function
sojourn_test_snapshot:
    .cfi_startproc
    stp x19, x20, [x0]
    stp x21, x22, [x0, 16]
    stp x23, x24, [x0, 32]
    stp x25, x26, [x0, 48]
    stp x27, x28, [x0, 64]
    str x29, [x0, 80]
    stp d8, d9, [x0, 88]
    stp d10, d11, [x0, 104]
    stp d12, d13, [x0, 120]
    stp d14, d15, [x0, 136]
    mov x1, sp
    stp x30, x1, [x0, 152]
    ret
    .cfi_endproc
    .size sojourn_test_snapshot, . - sojourn_test_snapshot
    .popsection
)");
#endif

/// What the C++ runtime's unwinder says of a frame.
struct known_frame {
  std::uint64_t pc, sp;
  std::uint64_t registers[preserved_registers];
};
_Unwind_Reason_Code note(_Unwind_Context* context, void* into) {
  known_frame f{};
  f.pc = _Unwind_GetIP(context);
  f.sp = _Unwind_GetCFA(context);
  for (std::size_t i = 0; i < preserved_registers; ++i) {
    f.registers[i] = _Unwind_GetGR(context, numbers[i]);
  }
  static_cast<std::vector<known_frame>*>(into)->push_back(f);
  return _URC_NO_REASON;
}

int compared = 0;
std::mt19937 random_shapes(1);

/// Walks all frames, beginning with its own, in both ways.
[[gnu::noinline]] void compare_from_here() {
  std::vector<known_frame> known;
  _Unwind_Backtrace(note, &known);
  while (known.back().pc == 0) known.pop_back();
  snapshot here;
  sojourn_test_snapshot(&here);
  frame_at_call frame{here.pc, here.sp, {}};
  for (std::size_t i = 0; i < preserved_registers; ++i) frame.registers[i] = &here.registers[i];
  stack_walk walk(tables, frame, ~std::uint64_t{0});
  // Begins with the frame of this function, which the C++ runtime saw in the middle of another
  // call.
  std::size_t at = 0;
  while (at < known.size() && known[at].sp != frame.sp) ++at;
  ASSERT_LT(at, known.size());
  int left = 0;
  while (walk.leave()) {
    ASSERT_LT(++at, known.size());
    ++left;
    ASSERT_EQ(walk.sp(), known[at].sp) << "after " << left << " frames";
    // Not after each frame, so that the saves of several frames are looked at together.
    if (random_shapes() % 4 == 0) continue;
    const frame_at_call now = walk.frame();
    ASSERT_EQ(now.pc, known[at].pc) << "after " << left << " frames";
    for (std::size_t i = 0; i < preserved_registers; ++i) {
      ASSERT_EQ(*now.registers[i], known[at].registers[i])
          << "register " << numbers[i] << " after " << left << " frames";
    }
  }
  EXPECT_EQ(at + 1, known.size()) << "frames were left out";
  compared += left;
}

void descend(int depth);

// Frames of several shapes. Values that live across a call are in registers.
[[gnu::noinline]] long plain(int depth, long a, long b) {
  const long c = a * b, d = a ^ b, e = a + 3 * b;
  descend(depth);
  return a + b + c + d + e;
}
[[gnu::noinline]] long over_aligned(int depth) {
  alignas(64) volatile long room[8] = {depth};
  descend(depth);
  return room[0];
}
[[gnu::noinline]] long of_any_size(int depth, std::size_t bytes) {
  auto* room = static_cast<volatile char*>(__builtin_alloca(bytes));
  room[0] = 1;
  descend(depth);
  return room[0];
}
[[gnu::noinline]] long aligned_of_any_size(int depth, std::size_t bytes) {
  alignas(32) volatile long room[4] = {depth};
  auto* more = static_cast<volatile char*>(__builtin_alloca(bytes));
  more[0] = 1;
  descend(depth);
  return room[0] + more[0];
}
[[gnu::noinline]] long of_many(int depth, long a, long b, long c, long d, long e, long f, long g,
                               long h) {
  descend(depth);
  return a + b + c + d + e + f + g + h;
}
[[gnu::noinline]] long that_cleans_up(int depth) {
  const std::string text(static_cast<std::size_t>(depth) + 40, 'x');
  const long n = of_many(depth, 1, 2, 3, 4, 5, 6, 7, depth);
  return n + static_cast<long>(text.size());
}
[[gnu::noinline]] long that_catches(int depth) {
  try {
    descend(depth);
  } catch (const std::runtime_error&) {
    return 1;
  }
  return 0;
}
[[gnu::noinline]] double with_numbers(int depth, double x) {
  const double y = x * 3, z = y / 7;
  descend(depth);
  return x + y + z;
}

[[gnu::noinline]] void descend(int depth) {
  if (depth == 0) return compare_from_here();
  switch (random_shapes() % 8) {
    case 0:
      plain(depth - 1, depth, 7);
      break;
    case 1:
      over_aligned(depth - 1);
      break;
    case 2:
      of_any_size(depth - 1, random_shapes() % 3000 + 1);
      break;
    case 3:
      aligned_of_any_size(depth - 1, random_shapes() % 3000 + 1);
      break;
    case 4:
      of_many(depth - 1, 1, 2, 3, 4, 5, 6, 7, 8);
      break;
    case 5:
      that_cleans_up(depth - 1);
      break;
    case 6:
      that_catches(depth - 1);
      break;
    default:
      with_numbers(depth - 1, depth);
  }
}

TEST(unwind_tables, frames_of_all_shapes_are_left_as_the_runtime_leaves_them) {
  for (int i = 0; i < 300 && !HasFatalFailure(); ++i) descend(i % 40);
  EXPECT_GT(compared, 300 * 20);
}

// ---- Handlers -----------------------------------------------------------------------------------

std::vector<const void*> handlers_found;
std::vector<unwind_row> rows_found;

/// Collects the handlers around the calls of all frames, from the youngest on, and their rows.
[[gnu::noinline]] void find_handlers() {
  snapshot here;
  sojourn_test_snapshot(&here);
  frame_at_call frame{here.pc, here.sp, {}};
  for (std::size_t i = 0; i < preserved_registers; ++i) frame.registers[i] = &here.registers[i];
  handlers_found.clear();
  rows_found.clear();
  constexpr std::uint64_t end = ~std::uint64_t{0};
  stack_walk walk(tables, frame, end);
  while (walk.go_to_handler(end)) {
    handlers_found.push_back(walk.row().handler);
    rows_found.push_back(walk.row());
    if (!walk.leave()) return;
  }
}

void (*volatile callee)();
[[gnu::noinline]] int under_here() {
  try {
    callee();
    return 0;
  } catch (const wanted_here&) {
    return 1;
  } catch (...) {
    return 2;
  }
}
[[gnu::noinline]] int under_others() {
  try {
    callee();
  } catch (const std::runtime_error&) {
    return 1;
  }
  try {
    return 0;
  } catch (const wanted_here&) {
    return 2;
  }
}
[[gnu::noinline]] int beside_it() {
  try {
    (void)under_others();
  } catch (const wanted_there&) {
    return 1;
  }
  callee();
  return 0;
}
[[gnu::noinline]] int under_both() {
  try {
    try {
      callee();
    } catch (const wanted_there&) {
      return 1;
    } catch (...) {
      return 2;
    }
  } catch (const wanted_here&) {
    return 3;
  }
  return 0;
}

using found = std::vector<const void*>;

TEST(unwind_tables, a_call_is_found_to_stand_under_a_wanted_handler) {
  callee = find_handlers;
  EXPECT_EQ(under_here(), 0);
  EXPECT_EQ(handlers_found, found{&typeid(wanted_here)});
  EXPECT_NE(rows_found[0].landing, 0u);
  EXPECT_GT(rows_found[0].selector, 0);
}

TEST(unwind_tables, one_beside_the_try_block_is_not) {
  callee = find_handlers;
  EXPECT_EQ(under_others(), 0);
  EXPECT_EQ(handlers_found, found{});
  EXPECT_EQ(beside_it(), 0);
  EXPECT_EQ(handlers_found, found{});
}

TEST(unwind_tables, of_several_the_innermost_is_told) {
  callee = find_handlers;
  EXPECT_EQ(under_both(), 0);
  EXPECT_EQ(handlers_found, found{&typeid(wanted_there)});
}

TEST(unwind_tables, handlers_of_frames_one_below_the_other_are_found_in_their_order) {
  callee = [] { (void)under_both(); };
  static void (*const again)() = [] {
    callee = find_handlers;
    (void)under_both();
  };
  callee = again;
  EXPECT_EQ(under_here(), 0);
  EXPECT_EQ(handlers_found, (found{&typeid(wanted_there), &typeid(wanted_here)}));
}

TEST(unwind_tables, an_address_without_tables_is_unknown) {
  static const unsigned char no_code[64] = {};
  const unwind_row& row = tables.row(reinterpret_cast<std::uint64_t>(no_code) + 8);
  EXPECT_EQ(row.how, unwind_row::form::unknown);
  EXPECT_EQ(row.handler, nullptr);
}

TEST(unwind_tables, a_row_is_read_once_however_many_there_are) {
  const auto somewhere = reinterpret_cast<std::uint64_t>(&find_handlers);
  std::vector<const unwind_row*> rows;
  for (std::uint64_t pc = 0; pc < 5000; ++pc) rows.push_back(&tables.row(somewhere + pc));
  for (std::uint64_t pc = 0; pc < 5000; ++pc) ASSERT_EQ(rows[pc], &tables.row(somewhere + pc));
  EXPECT_EQ(std::set<const unwind_row*>(rows.begin(), rows.end()).size(), rows.size());
  callee = find_handlers;
  EXPECT_EQ(under_here(), 0);
  EXPECT_EQ(handlers_found, found{&typeid(wanted_here)});
}

}  // namespace
}  // namespace sojourn::detail
