// SPDX-License-Identifier: Apache-2.0
// An iterator of a set knows the address of a node.
#include <sojourn/sojourn.hpp>

#include <set>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    const std::set<int> s{1};
#ifdef SOJOURN_EXPECT_ERROR
    rpc(0, [](std::set<int>::const_iterator at) { return *at; }, s.begin()).get();
#else
    rpc(0, [](int value) { return value; }, *s.begin()).get();
#endif
  });
}
