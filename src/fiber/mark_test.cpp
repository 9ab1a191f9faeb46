// SPDX-License-Identifier: Apache-2.0
// Marks as plain code meets them: a callee that returns or throws under one, without a scheduler.
#include "sojourn/detail/mark.hpp"

#include <cxxabi.h>
#include <gtest/gtest.h>
#include <unwind.h>

#include <array>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

#include "sojourn/activate.hpp"

#if defined(__clang__)
#define NOT_OPTIMISED __attribute__((noinline, optnone))
#else
#define NOT_OPTIMISED __attribute__((noinline, optimize("O0")))
#endif

namespace {

using sojourn::activate;
using sojourn::detail::running;

/// Overwrites registers, also some that a callee must preserve: the compiler saves those here.
int clobber_registers(int x) {
#if defined(__x86_64__)
  asm volatile(
      "xor %%ebx, %%ebx\n xor %%r12d, %%r12d\n xor %%r13d, %%r13d\n"
      "xor %%r14d, %%r14d\n xor %%r15d, %%r15d\n pxor %%xmm7, %%xmm7\n"
      :
      :
      : "rbx", "r12", "r13", "r14", "r15", "xmm7");
#elif defined(__aarch64__)
  asm volatile("mov x19, 0\n mov x20, 0\n mov x21, 0\n mov x27, 0\n mov x28, 0\n movi d8, 0\n"
               :
               :
               : "x19", "x20", "x21", "x27", "x28", "v8");
#endif
  return x + 1;
}

/// Keeps a dozen integers and doubles across a mark, more than there are registers to keep them in.
[[gnu::noinline]] std::uint64_t values_across_a_mark(std::uint64_t seed) {
  std::uint64_t a = seed * 3, b = seed ^ 5, c = seed + 7, d = seed * seed, e = ~seed, f = seed << 3;
  std::uint64_t g = seed >> 1, h = seed * 11, i = seed + 13, j = seed ^ 17;
  double x = static_cast<double>(seed) * 0.5, y = x + 1, z = x * y;
  std::uint64_t sum = 0;
  for (int n = 0; n < 10; ++n) {
    sum += static_cast<std::uint64_t>(activate(clobber_registers, n));
    a += b;
    b += c;
    c += d;
    d += e;
    e += f;
    f += g;
    g += h;
    h += i;
    i += j;
    j += a;
    x += y;
    y += z;
  }
  return a + b + c + d + e + f + g + h + i + j + sum + static_cast<std::uint64_t>(x + y + z);
}
[[gnu::noinline]] std::uint64_t values_across_a_plain_call(std::uint64_t seed) {
  std::uint64_t a = seed * 3, b = seed ^ 5, c = seed + 7, d = seed * seed, e = ~seed, f = seed << 3;
  std::uint64_t g = seed >> 1, h = seed * 11, i = seed + 13, j = seed ^ 17;
  double x = static_cast<double>(seed) * 0.5, y = x + 1, z = x * y;
  std::uint64_t sum = 0;
  for (int n = 0; n < 10; ++n) {
    sum += static_cast<std::uint64_t>(n + 1);
    a += b;
    b += c;
    c += d;
    d += e;
    e += f;
    f += g;
    g += h;
    h += i;
    i += j;
    j += a;
    x += y;
    y += z;
  }
  return a + b + c + d + e + f + g + h + i + j + sum + static_cast<std::uint64_t>(x + y + z);
}

TEST(mark, what_lives_across_a_marked_call_is_kept) {
  for (std::uint64_t seed : {1u, 2u, 77u, 123456u}) {
    EXPECT_EQ(values_across_a_mark(seed), values_across_a_plain_call(seed));
  }
}

NOT_OPTIMISED int sum_without_optimisation(int depth) {
  int here = depth * 10;
  int below =
      depth == 0 ? 0 : activate([](int d) { return sum_without_optimisation(d); }, depth - 1);
  return here + below;
}

TEST(mark, marks_nest_in_code_that_is_not_optimised) {
  EXPECT_EQ(sum_without_optimisation(20), 10 * 20 * 21 / 2);
}

struct alignas(16) vector_of_two {
  double first, second;
};

/// Faults when its frame is not aligned as the ABI says.
int store_aligned(int x) {
  volatile vector_of_two v{static_cast<double>(x), 1};
  auto address = reinterpret_cast<std::uintptr_t>(&v);
#if defined(__x86_64__)
  asm volatile("movaps %%xmm0, %0" : "=m"(*const_cast<vector_of_two*>(&v)));
#endif
  return static_cast<int>(address % 16);
}

/// Frames of several sizes: a leaf to the compiler, which does not see the call.
template <int Words>
[[gnu::noinline]] int from_a_frame_of(int x) {
  volatile std::uint64_t words[Words];
  for (auto& w : words) w = static_cast<std::uint64_t>(x);
  return activate(store_aligned, x) + (words[Words - 1] == static_cast<std::uint64_t>(x) ? 0 : 1);
}

TEST(mark, the_callees_stack_is_aligned_whatever_the_callers_is) {
  EXPECT_EQ(from_a_frame_of<1>(1), 0);
  EXPECT_EQ(from_a_frame_of<2>(2), 0);
  EXPECT_EQ(from_a_frame_of<3>(3), 0);
  EXPECT_EQ(from_a_frame_of<4>(4), 0);
}

TEST(mark, the_youngest_mark_is_known_and_forgotten) {
  EXPECT_EQ(running.youngest, nullptr);
  struct seen {
    bool opened, nested, dropped;
  };
  seen s = activate([] {
    auto* outer = running.youngest;
    bool nested = activate([] { return running.youngest->outer != nullptr; });
    return seen{outer != nullptr && outer->outer == nullptr, nested, running.youngest == outer};
  });
  EXPECT_TRUE(s.opened && s.nested && s.dropped);
  EXPECT_EQ(running.youngest, nullptr);
  EXPECT_THROW(activate([] { throw 1; }), int);
  EXPECT_EQ(running.youngest, nullptr) << "after an exception, too";
}

TEST(mark, values_of_every_kind_come_back) {
  activate([] {});
  EXPECT_EQ(activate([](char a, double b, long c) { return a + b + static_cast<double>(c); }, 'a',
                     0.5, 3L),
            'a' + 3.5);
  using large = std::array<int, 1000>;
  large numbers = activate(
      [](large in) {
        for (int& n : in) ++n;
        return in;
      },
      large{});
  EXPECT_EQ(numbers[999], 1);
  // A lambda that captures stays, and its result may be of any type.
  std::string text = "captured";
  EXPECT_EQ(activate([&] { return text + "!"; }), "captured!");
}

struct counted {
  static inline int alive = 0;
  counted() { ++alive; }
  counted(const counted&) { ++alive; }
  ~counted() { --alive; }
};

TEST(mark, an_exception_passes_and_objects_on_its_way_are_destroyed) {
  int deep = 1;
  try {
    activate([&] {
      counted one;
      activate(
          [](int x) {
            if (x > 0) throw std::out_of_range("under two marks");
          },
          deep);
      return one;
    });
    ADD_FAILURE() << "it does not arrive";
  } catch (const std::out_of_range& e) {
    EXPECT_STREQ(e.what(), "under two marks");
  }
  EXPECT_EQ(counted::alive, 0);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_EQ(std::current_exception(), nullptr);
  activate([&] {
    counted kept;
    deep = kept.alive;
    return kept;
  });
  EXPECT_EQ(deep, 1);
  EXPECT_EQ(counted::alive, 0) << "results are destroyed once";
}

TEST(mark, a_callee_starts_without_exceptions_and_the_caller_keeps_its_own) {
  struct in_a_destructor {
    int& uncaught_inside;
    ~in_a_destructor() {
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      uncaught_inside = activate([] { return std::uncaught_exceptions(); });
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  // As the worker thread does when it starts.
  running.exceptions =
      reinterpret_cast<sojourn::detail::exception_globals*>(abi::__cxa_get_globals());
  int uncaught_inside = -1;
  try {
    in_a_destructor d{uncaught_inside};
    throw std::runtime_error("outer");
  } catch (const std::runtime_error&) {
    EXPECT_EQ(uncaught_inside, 0);
    EXPECT_TRUE(activate([] { return std::current_exception() == nullptr; }));
    // An exception thrown and caught below does not disturb the one that is being handled here.
    EXPECT_EQ(activate([] {
                try {
                  throw 5;
                } catch (int five) {
                  return five;
                }
              }),
              5);
    EXPECT_THROW(activate([] { throw 'c'; }), char);
    try {
      throw;
    } catch (const std::exception& e) {
      EXPECT_STREQ(e.what(), "outer");
    }
  }
}

// Functions that a walk of the stack has met.
struct walk {
  void* wanted[3];
  bool met[3];
  int order[3];
  int frames;
};
walk walked;

_Unwind_Reason_Code visit(_Unwind_Context* context, void*) {
  void* function =
      _Unwind_FindEnclosingFunction(reinterpret_cast<void*>(_Unwind_GetIP(context) - 1));
  for (int i = 0; i < 3; ++i) {
    if (function == walked.wanted[i] && !walked.met[i]) {
      walked.met[i] = true;
      walked.order[i] = walked.frames;
    }
  }
  return ++walked.frames < 100 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

[[gnu::noinline]] int youngest_function(int x) {
  _Unwind_Backtrace(visit, nullptr);
  return x + 1;
}
[[gnu::noinline]] int middle_function(int x) { return activate(youngest_function, x) + 1; }
[[gnu::noinline]] int oldest_function(int x) { return activate(middle_function, x) + 1; }

TEST(mark, a_walk_of_the_stack_passes_marks) {
  walked = {{reinterpret_cast<void*>(&youngest_function), reinterpret_cast<void*>(&middle_function),
             reinterpret_cast<void*>(&oldest_function)},
            {},
            {},
            0};
  EXPECT_EQ(oldest_function(1), 4);
  EXPECT_TRUE(walked.met[0] && walked.met[1] && walked.met[2]);
  EXPECT_LT(walked.order[0], walked.order[1]);
  EXPECT_LT(walked.order[1], walked.order[2]);
}

}  // namespace
