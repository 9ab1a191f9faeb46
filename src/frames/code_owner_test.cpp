// SPDX-License-Identifier: Apache-2.0
#include "frames/code_owner.hpp"

#include <gtest/gtest.h>

#include "frames/symbols.hpp"

namespace sojourn::detail {
namespace {

TEST(code_owner, functions_of_programs_and_of_c_libraries_are_the_programs) {
  for (const char* symbol : {"main", "memcpy", "qsort", "_Z6storesPll",
                             "_ZN12_GLOBAL__N_16storesENS_4rootEl", "_ZN3app4tree6insertEl"})
    EXPECT_EQ(owner_of_symbol(symbol), code_owner::program) << symbol;
  for (const char* name : {
           "main",
           "main::{lambda(std::string)#1}::operator()(std::string) const",
           "(anonymous namespace)::walk(std::vector<int> const&)",
           "std::vector<int> collect<std::string>(std::string const&)",
           "std::unique_ptr<cell> tree::node<int>::take<true>() const",
           "decltype(auto) tree::visit<std::plus<int> >(std::plus<int>)",
           "walk [clone .cold]",
           "bool tree::operator< <std::string>(std::string const&)",
       })
    EXPECT_EQ(owner_of_name(name), code_owner::program) << name;
}

TEST(code_owner, functions_of_the_standard_library_and_of_the_compiler_are_libraries) {
  for (const char* symbol : {"_ZNSt6vectorIiSaIiEE9push_backERKi", "_ZSt9terminatev",
                             "_Unwind_Resume", "__cxa_throw", "_start"})
    EXPECT_EQ(owner_of_symbol(symbol), code_owner::library) << symbol;
  for (const char* name : {
           "std::terminate()",
           "decltype(auto) std::apply<long (*&)(cell, int), std::tuple<cell, int> >(long "
           "(*&)(cell, "
           "int), std::tuple<cell, int>&&)",
           "decltype ((f)()) std::call<cell>(cell)",
           "std::__invoke_result<long (*&)(cell), cell>::type std::__invoke<long (*&)(cell), "
           "cell>(long (*&)(cell), cell&&)",
           "long std::__invoke_impl<long, long (*&)(cell), cell>(std::__invoke_other, long "
           "(*&)(cell))",
           "std::function<long (cell)>::operator()(cell) const",
       })
    EXPECT_EQ(owner_of_name(name), code_owner::library) << name;
}

TEST(code_owner, functions_of_sojourn_are_the_runtimes) {
  for (const char* symbol :
       {"sojourn_call_on", "_ZN7sojourn5yieldEv", "_ZNK7sojourn6thread8finishedEv",
        "__wrap_pthread_mutex_lock", "_ZZN7sojourn6detail20attach_shared_memoryEvENKUlPKvE2_clES2_",
        "_ZNSt6vectorIN7sojourn6detail5pieceESaIS2_EE9push_backERKS2_",
        "_ZN7sojourn6reduceIiSt4plusIvEEET_S3_T0_i"})
    EXPECT_EQ(owner_of_symbol(symbol), code_owner::runtime) << symbol;
  for (const char* name :
       {"sojourn_call_marked", "sojourn::migrate_to(int)",
        "long sojourn::detail::(anonymous namespace)::shared<int>(int) [clone .part.0]"})
    EXPECT_EQ(owner_of_name(name), code_owner::runtime) << name;
}

// If a doorbell is answered in the middle of such a function, the message that is being written is
// lost.
TEST(code_owner, templates_of_sojourn_with_local_types_of_sojourn_are_the_runtimes) {
  for (const char* symbol :
       {"_ZZNK7sojourn6detail5pages12interval_log5writeERNS1_14message_writerESt4spanIKjLm"
        "18446744073709551615EES7_ENKUlT_E_clIZNKS2_5writeES4_S7_S7_EUlRKNS1_15interval_recordEE_"
        "EEDaS8_",
        "_ZN7sojourn6detail11reduce_planIbZNS0_20gather_shared_memoryEvEUlbbE_EENS0_"
        "15collective_planEv",
        "_ZN7sojourn6detail11reduce_planIZNS0_12_GLOBAL__N_122wait_until_all_arrivedEvE4sumsZNS2_"
        "22wait_until_all_arrivedEvEUlS3_S3_E_EENS0_15collective_planEv"})
    EXPECT_EQ(owner_of_symbol(symbol), code_owner::runtime) << symbol;
}

TEST(code_owner, templates_of_sojourn_with_types_of_the_program_may_hold_its_functions) {
  for (const char* symbol :
       {"_ZN7sojourn3runIZ4mainEUlvE_EEiiPPcT_", "_ZN7sojourn10checkpointI4rootEEvRKT_",
        "_ZN7sojourn6detail10request_ofINS0_13thread_targetIPFvvEEEJEE6handleERNS0_7requestE",
        "_ZN7sojourn6detail10request_ofINS0_13thread_targetIPFvNS_10global_ptrIN7threads5board"
        "EEEEEEJS6_EE6handleERNS0_7requestE"})
    EXPECT_EQ(owner_of_symbol(symbol), code_owner::runtime_for_program) << symbol;
}

TEST(code_owner, a_symbol_and_its_name_as_written_say_the_same_of_all_functions_of_this_program) {
  std::size_t compared = 0, differ = 0;
  symbol_table("/proc/self/exe").each([&](const char* symbol, std::uint64_t, std::uint64_t) {
    code_owner by_symbol = owner_of_symbol(symbol);
    if (by_symbol == code_owner::runtime_for_program) by_symbol = code_owner::runtime;
    const std::string name = demangle(symbol);
    ++compared;
    if (owner_of_name(name) == by_symbol) return;
    if (++differ <= 10) ADD_FAILURE() << symbol << " is " << name;
  });
  EXPECT_GT(compared, 1000u);
  EXPECT_EQ(differ, 0u);
}

[[gnu::noinline]] std::uint64_t returns_to() {
  return reinterpret_cast<std::uint64_t>(__builtin_return_address(0));
}

SOJOURN_CALLS_PROGRAM std::uint64_t call(std::uint64_t (*function)()) {
  const std::uint64_t result = function();
  asm volatile("");
  return result;
}

TEST(code_owner, a_marked_function_is_known_by_its_address_whatever_its_name) {
  const std::uint64_t inside = call(returns_to) - 1;
  EXPECT_EQ(owner_of_code(inside), code_owner::calls_program);
  EXPECT_NE(owner_of_code(reinterpret_cast<std::uint64_t>(&demangle)), code_owner::calls_program);
}

}  // namespace
}  // namespace sojourn::detail
