// SPDX-License-Identifier: Apache-2.0
// A lambda with a capture, called at an element of a container.
#include <sojourn/containers.hpp>
#include <sojourn/sojourn.hpp>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    const auto m = dist_map<long, long>::make();
    const long more = 3;
#ifdef SOJOURN_EXPECT_ERROR
    m.ff_update(1, [more](long& n) { n += more; });
#else
    m.ff_update(1, [](long& n, long by) { n += by; }, more);
#endif
  });
}
