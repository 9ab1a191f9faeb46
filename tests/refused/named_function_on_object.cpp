// SPDX-License-Identifier: Apache-2.0
// A name of a function is none of a method.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

struct one;
using function = method<"f", void(int)>;
using of_one = method<"one.f", void (one::*)(int)>;

int main(int argc, char** argv) {
#ifdef SOJOURN_EXPECT_ERROR
  global_ptr<one>().call<function>(1);
#else
  (void)[](global_ptr<one> p) { p.call<of_one>(1); };
#endif
  return run(argc, argv, [] {});
}
