// SPDX-License-Identifier: Apache-2.0
// Elements of containers are looked at, too.
#include <sojourn/sojourn.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    rpc(0, [](std::vector<int*> v) { return v.size(); }, std::vector<int*>()).get();
#else
    rpc(0, [](std::vector<int> v) { return v.size(); }, std::vector<int>()).get();
#endif
  });
}
