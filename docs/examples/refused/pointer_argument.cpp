// SPDX-License-Identifier: Apache-2.0
// docs/migration.md: an argument that would point into another rank's memory.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <vector>

using namespace sojourn;

struct sensor {
  long value = 5;
  long read() const { return value; }
};

#ifdef SOJOURN_EXPECT_ERROR
void measure(global_ptr<sensor> s, long* into) { *into = s.call<&sensor::read>(via::migrate); }

void ask(global_ptr<sensor> s) {
  long value = 0;
  activate(measure, s, &value);
  std::printf("%ld\n", value);
}
#else
long measure(global_ptr<sensor> s) { return s.call<&sensor::read>(via::migrate); }

void ask(global_ptr<sensor> s) {
  long value = activate(measure, s);
  std::printf("%ld\n", value);
}
#endif

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() == 0) ask(make<sensor>(rank_count() - 1));
  });
}
