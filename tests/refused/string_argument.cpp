// SPDX-License-Identifier: Apache-2.0
// A std::string holds an address; inline_string holds its characters.
#include <sojourn/sojourn.hpp>

#include <functional>
#include <string>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    rpc(0, [](std::string s) { return s.size(); }, std::string("text")).get();
#else
    rpc(0, [](inline_string<9> s) { return s.size(); }, inline_string<9>("text")).get();
#endif
  });
}
