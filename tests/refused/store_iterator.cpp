// SPDX-License-Identifier: Apache-2.0
// An iterator over an array is an address.
#include <sojourn/sojourn.hpp>

#include <vector>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    std::vector<int> v{1};
    store(global_ptr<std::vector<int>::iterator>(), v.begin());
#else
    store(make<int>(0, 1), 2);
#endif
  });
}
