// SPDX-License-Identifier: Apache-2.0
// Who else owns it would not know of the copy.
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
    rpc(0, [](std::shared_ptr<int> p) { return *p; }, std::make_shared<int>(1)).get();
#else
    rpc(0, [](std::unique_ptr<int> p) { return *p; }, std::make_unique<int>(1)).get();
#endif
  });
}
