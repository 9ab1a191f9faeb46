// SPDX-License-Identifier: Apache-2.0
// Where the base lies in the object stands in the object.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

struct base {
  int a = 1;
};
struct derived : virtual base {};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    (void)static_pointer_cast<base>(make<derived>(0));
#else
    (void)static_pointer_cast<derived>(make<derived>(0));
#endif
  });
}
