// SPDX-License-Identifier: Apache-2.0
// The versions of a replicated object travel.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

struct list {
  long first = 1;
#ifdef SOJOURN_EXPECT_ERROR
  const list* rest = nullptr;
#endif
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    const auto all = make_replicated<list>();
    return static_cast<int>(all.read([](const list& l) { return l.first; })) - 1;
  });
}
