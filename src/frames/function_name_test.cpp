// SPDX-License-Identifier: Apache-2.0
#include "frames/function_name.hpp"

#include <gtest/gtest.h>

namespace {

using sojourn::detail::callable_in;

TEST(function_name, a_function_of_the_runtime_tells_which_callable_it_was_instantiated_for) {
  EXPECT_EQ(
      callable_in(
          "sojourn::detail::request_of<sojourn::detail::thread_target<main::{lambda(int)#1}>, "
          "int>::handle(sojourn::detail::request&)"),
      "main::{lambda(int)#1}");
  EXPECT_EQ(callable_in("int sojourn::run<main::{lambda()#1}>(int, char**, main::{lambda()#1})"),
            "main::{lambda()#1}");
  EXPECT_EQ(
      callable_in("sojourn::detail::method_target<(long (cell::*)(long))&cell::add, cell, cell, "
                  "long, false>::run()"),
      "cell::add");
  EXPECT_EQ(
      callable_in(
          "sojourn::detail::request_of<sojourn::detail::function_target<void (*)(int), void>, "
          "int>::handle()"),
      "");
  EXPECT_EQ(callable_in("sojourn::detail::wait_in(sojourn::detail::waiters&)"), "");
  EXPECT_EQ(callable_in("tree::walk(int)"), "");
}

}  // namespace
