// SPDX-License-Identifier: Apache-2.0
#include "base/checked.hpp"

#include <gtest/gtest.h>

namespace {

using sojourn::detail::callable_in;
using sojourn::detail::is_library_function;

TEST(checked, functions_of_the_runtime_and_of_the_standard_library_are_known) {
  for (const char* symbol : {
           "std::terminate()",
           "sojourn_call_marked",
           "sojourn::migrate_to(int)",
           "decltype(auto) std::apply<long (*&)(cell, int), std::tuple<cell, int> >(long "
           "(*&)(cell, "
           "int), std::tuple<cell, int>&&)",
           "decltype ((f)()) std::call<cell>(cell)",
           "std::__invoke_result<long (*&)(cell), cell>::type std::__invoke<long (*&)(cell), "
           "cell>(long (*&)(cell), cell&&)",
           "long std::__invoke_impl<long, long (*&)(cell), cell>(std::__invoke_other, long "
           "(*&)(cell))",
           "long sojourn::detail::(anonymous namespace)::shared<int>(int) [clone .part.0]",
           "std::function<long (cell)>::operator()(cell) const",
       }) {
    EXPECT_TRUE(is_library_function(symbol)) << symbol;
  }
}

TEST(checked, functions_of_the_program_are_not_taken_for_them) {
  for (const char* symbol : {
           "main",
           "main::{lambda(std::string)#1}::operator()(std::string) const",
           "(anonymous namespace)::walk(std::vector<int> const&)",
           "std::vector<int> collect<std::string>(std::string const&)",
           "std::unique_ptr<cell> tree::node<int>::take<true>() const",
           "decltype(auto) tree::visit<std::plus<int> >(std::plus<int>)",
           "walk [clone .cold]",
           "bool tree::operator< <std::string>(std::string const&)",
       }) {
    EXPECT_FALSE(is_library_function(symbol)) << symbol;
  }
}

TEST(checked, a_function_of_the_runtime_tells_which_callable_it_was_instantiated_for) {
  EXPECT_EQ(callable_in("sojourn::detail::thread_request<main::{lambda(int)#1}, int>::run(void*)"),
            "main::{lambda(int)#1}::operator()() const");
  EXPECT_EQ(callable_in("int sojourn::run<main::{lambda()#1}>(int, char**, main::{lambda()#1})"),
            "main::{lambda()#1}::operator()() const");
  EXPECT_EQ(callable_in("sojourn::detail::method_request<(long (cell::*)(long))&cell::add, cell, "
                        "long>::handle(sojourn::detail::arrival&)"),
            "cell::add");
  EXPECT_EQ(callable_in("sojourn::detail::callable_request<void (*)(int), int>::handle()"), "");
  EXPECT_EQ(callable_in("sojourn::detail::wait_in(sojourn::detail::waiters&)"), "");
  EXPECT_EQ(callable_in("tree::walk(int)"), "");
}

}  // namespace
