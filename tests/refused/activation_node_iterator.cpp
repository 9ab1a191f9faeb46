// SPDX-License-Identifier: Apache-2.0
// So does an iterator of a map, also in a struct.
#include <sojourn/sojourn.hpp>

#include <map>

using namespace sojourn;

struct place {
#ifdef SOJOURN_EXPECT_ERROR
  std::map<int, long>::iterator at;
#else
  int at;
#endif
  int steps;
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    std::map<int, long> m{{1, 2}};
    activate([](place p) { return p.steps; }, place{m.begin(), 1});
#else
    activate([](place p) { return p.steps; }, place{1, 1});
#endif
  });
}
