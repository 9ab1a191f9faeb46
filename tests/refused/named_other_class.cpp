// SPDX-License-Identifier: Apache-2.0
// A method is called on objects of its class.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

struct one;
struct two;
using of_one = method<"one.f", void (one::*)()>;
using of_two = method<"two.f", void (two::*)()>;

int main(int argc, char** argv) {
#ifdef SOJOURN_EXPECT_ERROR
  global_ptr<two>().call<of_one>();
#else
  (void)[](global_ptr<two> p) { p.call<of_two>(); };
#endif
  return run(argc, argv, [] {});
}
