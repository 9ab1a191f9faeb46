// SPDX-License-Identifier: Apache-2.0
#include "frames/debug_info.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sojourn/detail/asan.hpp"

// Compiled with -g in all presets (cmake/SojournTests.cmake): -g1 knows no variables.
namespace debug_info_under_test {

using sojourn::detail::describe_address;
using sojourn::detail::source_frame;
using sojourn::detail::why_no_debug_info;

const std::string program = "/proc/self/exe";

std::string variable_at(const std::string& file, std::uint64_t pc, std::int64_t offset) {
  return sojourn::detail::variable_at(file, pc, offset).name;
}

std::uint64_t called_from;

[[gnu::noinline]] void note_caller() {
  called_from = reinterpret_cast<std::uint64_t>(__builtin_return_address(0)) - 1;
}

[[gnu::always_inline]] inline void innermost(int times) {
  for (int i = 0; i < times; ++i) note_caller();
}
constexpr int innermost_line = __LINE__ - 2;

struct walker {
  [[gnu::always_inline]] void walk(int times) { innermost(times); }
};
constexpr int walk_line = __LINE__ - 2;

[[gnu::noinline]] long outermost(walker w, int times) {
  w.walk(times);
  return times;
}
constexpr int outermost_line = __LINE__ - 3;

std::uint64_t cfa;

struct place {
  std::int64_t first_low, first_high, second, inner, inlined, other, of_runtime;
};
place places;

std::int64_t offset_of(const volatile void* byte) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uint64_t>(byte) - cfa);
}

[[gnu::always_inline]] inline void with_array(int n) {
  volatile char in_the_inlined[24] = {};
  places.inlined = offset_of(&in_the_inlined[n]);
  note_caller();
}

}  // namespace debug_info_under_test
namespace sojourn::detail {
[[gnu::always_inline]] inline void with_array_of_the_runtime(int n) {
  volatile char in_the_runtime[24] = {};
  debug_info_under_test::places.of_runtime = debug_info_under_test::offset_of(&in_the_runtime[n]);
  debug_info_under_test::note_caller();
}
}  // namespace sojourn::detail
namespace debug_info_under_test {

[[gnu::noinline]] void frame_with_the_runtime(int n) {
  cfa = reinterpret_cast<std::uint64_t>(__builtin_dwarf_cfa());
  volatile long own[4] = {};
  places.first_low = offset_of(&own[n]);
  sojourn::detail::with_array_of_the_runtime(n);
  (void)own[n];
}

[[gnu::noinline]] long frame_of_interest(int n) {
  cfa = reinterpret_cast<std::uint64_t>(__builtin_dwarf_cfa());
  volatile long first[4] = {};
  volatile double second = n;
  places.first_low = offset_of(&first[0]);
  places.first_high = offset_of(&first[3]) + 7;
  places.second = offset_of(&second);
  long sum = 0;
  {
    volatile long in_a_closed_block[3] = {};
    places.other = offset_of(&in_a_closed_block[1]);
    sum += in_a_closed_block[n];
  }
  {
    volatile long in_a_block[3] = {};
    places.inner = offset_of(&in_a_block[1]);
    with_array(n);
    sum += in_a_block[n];
  }
  return first[n] + static_cast<long>(second) + sum;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

TEST(debug_info, names_inlined_functions_innermost_first_each_with_its_line) {
  if (!why_no_debug_info().empty()) GTEST_SKIP() << why_no_debug_info();
  outermost(walker{}, 1);
  std::vector<source_frame> frames = describe_address(program, called_from);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0].function, "debug_info_under_test::innermost(int)");
  EXPECT_EQ(frames[0].line, innermost_line);
  EXPECT_TRUE(frames[0].inlined);
  EXPECT_EQ(frames[1].function, "debug_info_under_test::walker::walk(int)");
  EXPECT_EQ(frames[1].line, walk_line);
  EXPECT_TRUE(frames[1].inlined);
  EXPECT_EQ(frames[2].function,
            "debug_info_under_test::outermost(debug_info_under_test::walker, int)");
  EXPECT_EQ(frames[2].line, outermost_line);
  EXPECT_FALSE(frames[2].inlined);
  for (const source_frame& f : frames) EXPECT_TRUE(ends_with(f.file, "debug_info_test.cpp"));
}

TEST(debug_info, names_no_variable_of_what_the_runtime_had_inlined) {
#if SOJOURN_ASAN
  GTEST_SKIP() << "the address sanitizer lays out the variables of a frame itself";
#endif
  if (!why_no_debug_info().empty()) GTEST_SKIP() << why_no_debug_info();
  frame_with_the_runtime(0);
  EXPECT_EQ(variable_at(program, called_from, places.first_low), "own");
  EXPECT_EQ(variable_at(program, called_from, places.of_runtime), "");
}

TEST(debug_info, names_the_variable_that_holds_a_byte_of_a_frame) {
#if SOJOURN_ASAN
  GTEST_SKIP() << "the address sanitizer lays out the variables of a frame itself";
#endif
  if (!why_no_debug_info().empty()) GTEST_SKIP() << why_no_debug_info();
  frame_of_interest(1);
  EXPECT_EQ(variable_at(program, called_from, places.first_low), "first");
  EXPECT_EQ(variable_at(program, called_from, places.first_high), "first");
  EXPECT_EQ(variable_at(program, called_from, places.second), "second");
  EXPECT_EQ(variable_at(program, called_from, places.inner), "in_a_block");
  EXPECT_EQ(variable_at(program, called_from, places.inlined), "in_the_inlined");
  EXPECT_NE(variable_at(program, called_from, places.other), "in_a_closed_block");
  // The return address is no variable, nor is what lies beyond this frame.
  EXPECT_EQ(variable_at(program, called_from, -8), "");
  EXPECT_EQ(variable_at(program, called_from, 1 << 20), "");
}

// In the debug information of gcc, the function that calls the lambda by its address is nested in a
// function without addresses.
template <class Body>
[[gnu::always_inline]] inline long through_a_pointer(Body& body) {
  long (*volatile call)(void*) = [](void* b) {
    cfa = reinterpret_cast<std::uint64_t>(__builtin_dwarf_cfa());
    volatile long in_the_lambda[4] = {};
    places.first_low = offset_of(&in_the_lambda[0]);
    return (*static_cast<Body*>(b))() + in_the_lambda[1];
  };
  return call(&body);
}
constexpr int through_line = __LINE__ - 4;
[[gnu::noinline]] long calls_through_a_pointer(long n) {
  auto body = [&]() __attribute__((always_inline)) {
    innermost(1);
    return n;
  };
  return through_a_pointer(body) + 1;
}

TEST(debug_info, knows_the_functions_of_lambdas_and_what_was_inlined_there) {
  if (!why_no_debug_info().empty()) GTEST_SKIP() << why_no_debug_info();
  calls_through_a_pointer(1);
  std::vector<source_frame> frames = describe_address(program, called_from);
  // The function that calls the lambda is either a function of its own, or the lambda is inlined
  // into it.
  ASSERT_GE(frames.size(), 3u);
  EXPECT_EQ(frames[0].function, "debug_info_under_test::innermost(int)");
  EXPECT_EQ(frames[0].line, innermost_line);
  EXPECT_NE(frames[1].function.find("operator()"), std::string::npos) << frames[1].function;
  EXPECT_TRUE(frames[1].inlined);
  EXPECT_EQ(frames[2].line, through_line);
  EXPECT_FALSE(frames.back().inlined);
  EXPECT_NE(frames.back().function.find("through_a_pointer"), std::string::npos)
      << frames.back().function;
#if !SOJOURN_ASAN
  EXPECT_EQ(variable_at(program, called_from, places.first_low), "in_the_lambda");
#endif
}

[[gnu::noinline]] long has_an_inlined_lambda(long n) {
  auto lambda = [](long m) __attribute__((always_inline)) {
    note_caller();
    return m + 1;
  };
  return lambda(n) + 1;
}
constexpr int inlined_lambda_line = __LINE__ - 5;

TEST(debug_info, names_an_inlined_lambda_after_the_function_it_stands_in) {
  if (!why_no_debug_info().empty()) GTEST_SKIP() << why_no_debug_info();
  has_an_inlined_lambda(1);
  std::vector<source_frame> frames = describe_address(program, called_from);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_TRUE(frames[0].inlined);
  EXPECT_EQ(frames[0].line, inlined_lambda_line);
  // gcc writes "has_an_inlined_lambda::{lambda}::operator()", clang adds the parameters.
  EXPECT_EQ(frames[0].function.rfind("debug_info_under_test::has_an_inlined_lambda", 0), 0u);
  EXPECT_NE(frames[0].function.find("::operator()"), std::string::npos) << frames[0].function;
}

struct holder {
  char text[8];
  long* inside[2];
};
struct derived : holder {
  union {
    long* sometimes;
    char bytes[16];
  };
};
struct {
  std::int64_t pointer, constant, number, text, inside, sometimes, bytes;
} kinds;

[[gnu::noinline]] long frame_of_kinds(long n) {
  cfa = reinterpret_cast<std::uint64_t>(__builtin_dwarf_cfa());
  long* volatile pointer = &n;
  long const* volatile const constant = &n;
  volatile long number = n;
  volatile derived object{};
  object.inside[1] = &n;
  kinds = {offset_of(&pointer),        offset_of(&constant),         offset_of(&number),
           offset_of(object.text),     offset_of(object.inside) + 8, offset_of(object.bytes),
           offset_of(object.bytes) + 8};
  note_caller();
  return *pointer + *constant + number + *object.inside[1];
}

TEST(debug_info, tells_where_pointers_lie_in_variables) {
#if SOJOURN_ASAN
  GTEST_SKIP() << "the address sanitizer lays out the variables of a frame itself";
#endif
  if (!why_no_debug_info().empty()) GTEST_SKIP() << why_no_debug_info();
  frame_of_kinds(1);
  auto is_pointer = [](std::int64_t offset) {
    return sojourn::detail::variable_at(program, called_from, offset).is_pointer;
  };
  EXPECT_EQ(variable_at(program, called_from, kinds.constant), "constant");
  EXPECT_TRUE(is_pointer(kinds.pointer));
  EXPECT_TRUE(is_pointer(kinds.constant));
  EXPECT_FALSE(is_pointer(kinds.number));
  EXPECT_FALSE(is_pointer(kinds.text));
  EXPECT_TRUE(is_pointer(kinds.inside));
  EXPECT_TRUE(is_pointer(kinds.sometimes));
  EXPECT_FALSE(is_pointer(kinds.bytes));
}

TEST(debug_info, messages_name_variables_that_a_program_wrote) {
  using sojourn::detail::described_variable;
  EXPECT_EQ(described_variable("buffer"), "`buffer`");
  EXPECT_EQ(described_variable("range1"), "`range1`");
  EXPECT_EQ(described_variable(""), "a word");
  for (const char* made : {"__for_range", "__for_begin", "__for_end", "__range1", "__begin12"}) {
    EXPECT_EQ(described_variable(made), "a temporary of a range-for") << made;
  }
}

TEST(debug_info, knows_nothing_of_addresses_outside_the_program) {
  EXPECT_TRUE(describe_address(program, 0x10).empty());
  EXPECT_TRUE(describe_address(program, ~std::uint64_t{0}).empty());
  EXPECT_EQ(variable_at(program, 0x10, -16), "");
}

TEST(debug_info, of_files_that_are_no_programs_nothing_is_known) {
  for (const char* file : {"/nonexistent", "/dev/null", "/tmp", "/etc/passwd"}) {
    EXPECT_TRUE(describe_address(file, 0x401000).empty()) << file;
    EXPECT_EQ(variable_at(file, 0x401000, -16), "") << file;
  }
}

}  // namespace debug_info_under_test
