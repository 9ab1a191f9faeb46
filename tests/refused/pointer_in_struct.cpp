// SPDX-License-Identifier: Apache-2.0
// A struct is no bytes when one of its members is an address.
#include <sojourn/sojourn.hpp>

#include <cstddef>

using namespace sojourn;

struct row {
  std::size_t length;
#ifdef SOJOURN_EXPECT_ERROR
  const double* values;
#else
  global_ptr<const double> values;
#endif
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    rpc(0, [](row r) { return r.length; }, row{1, nullptr}).get();
#else
    rpc(0, [](row r) { return r.length; }, row{1, {}}).get();
#endif
  });
}
