// SPDX-License-Identifier: Apache-2.0
// So does a string_view, by itself or in a struct.
#include <sojourn/sojourn.hpp>

#include <string_view>

using namespace sojourn;

struct word {
#ifdef SOJOURN_EXPECT_ERROR
  std::string_view text;
#else
  inline_string<40> text;
#endif
  int count;
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    activate([](word w) { return w.count; }, word{"x", 1});
#else
    activate([](word w) { return w.count; }, word{inline_string<40>("x"), 1});
#endif
  });
}
