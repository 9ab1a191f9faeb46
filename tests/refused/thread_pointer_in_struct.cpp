// SPDX-License-Identifier: Apache-2.0
// A thread may leave its rank, and the struct goes along.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

struct row {
  int length;
#ifdef SOJOURN_EXPECT_ERROR
  double* values;
#else
  local_ptr<double> values;
#endif
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    spawn([](row r) { (void)r; }, row{1, nullptr}).join();
#else
    spawn([](row r) { (void)r; }, row{1, {}}).join();
#endif
  });
}
