// SPDX-License-Identifier: Apache-2.0
// A std::string in a frame that moves would leave its characters behind.
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
    activate([](std::string s) { return s.size(); }, std::string("text"));
#else
    activate([](inline_string<9> s) { return s.size(); }, inline_string<9>("text"));
#endif
  });
}
