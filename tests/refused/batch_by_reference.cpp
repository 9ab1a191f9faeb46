// SPDX-License-Identifier: Apache-2.0
// A method that takes a batch by reference, or with something beside it.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

namespace {
struct part {
  long sum = 0;
  void add(batch<long> items) {
    for (const long n : items) sum += n;
  }
  void add_times(const batch<long>& items) { add(items); }
};
}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    const auto p = make<part>(0);
#ifdef SOJOURN_EXPECT_ERROR
    p.ff<&part::add_times>(3L);
#else
    p.ff<&part::add>(3L);
#endif
  });
}
