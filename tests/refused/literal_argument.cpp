// SPDX-License-Identifier: Apache-2.0
// A string literal is passed as a pointer.
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
    rpc(0, [](std::string s) { return s.size(); }, "text").get();
#else
    rpc(0, [](std::string s) { return s.size(); }, std::string("text")).get();
#endif
  });
}
